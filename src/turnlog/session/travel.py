"""Rewind, undo and redo, files and conversation together: a plan, a checkpoint of now, the change, an entry.

Interrupted half-way, the intent in the log says what was to be done. Per path: as before means apply, as after means
done, anything else is somebody's work and stays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Conflict, NotFound
from turnlog.log.entry import Checkpoint, Head, Intent
from turnlog.log.fold import Move
from turnlog.session.appender import Appender
from turnlog.session.files import Files, Span, must, only_paths, steps_of
from turnlog.session.places import is_alive
from turnlog.session.rewind import move_back
from turnlog.store import Store
from turnlog.workspace.plan import Plan, Step
from turnlog.workspace.restore import Outcome

Others = Callable[[Checkpoint], list[Span]]
"""Stretches of other sessions' work in the same workspace that overlap ours since that checkpoint."""


class Moved(Struct, frozen=True):
    """What a rewind did: its entry, its plan, and what could not be done."""

    entry: Head
    plan: Plan
    problems: list[Outcome]


class Travel:
    """Moves one session back and forth."""

    def __init__(self, store: Store, appender: Appender, files: Files, others: Others) -> None:
        self._store = store
        self._appender = appender
        self._history = appender.history
        self._files = files
        self._others = others

    # ── plans ─────────────────────────────────────────────────────────────────────────────────────

    def target(self, asof: int) -> Checkpoint | None:
        """The checkpoint that files go back to for a conversation as of that entry."""
        return None if self._files.why_not() else self._files.at_or_before(asof)

    def plan(self, asof: int, *, only: list[str] | None = None, force: bool = False) -> Plan:
        """What a rewind would do to the files; nothing is touched and nothing is written."""
        target = must(self.target(asof), f"entry {asof}")
        with self._store.keeping(), self._store.pack() as pack:
            now = self._files.snapshot(pack)
        return self._plan(target, now, only, force)

    def _plan(self, target: Checkpoint, now: Checkpoint, only: list[str] | None, force: bool) -> Plan:
        spans = self._files.spans_since(target)
        return self._files.plan(target, now, spans, others=self._others(target), only=only_paths(only), force=force)

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def rewind(
        self, head: Head, *, files: bool, conversation: bool, only: list[str] | None = None, force: bool = False
    ) -> Moved:
        """Go back: the conversation as `head` says, the files to the last checkpoint before it."""
        self.finish_interrupted()
        target = self.target(head.asof) if files else None
        if not conversation:
            head = self._stay(head.why)
        if target is None:
            return Moved(self._append(head), Plan([], _no_files(files, self._files.why_not())), [])

        def plan(now: Checkpoint) -> Plan:
            return self._plan(target, now, only, force)

        return self._move(head, plan)

    def take_back(self, move: Move, why: str) -> Moved:
        """Undo or redo: back to what was there before the entry that `move` is about."""
        self.finish_interrupted()
        head = move_back(self._history, move, why)
        mark = self._history.at(move.back + 1)
        before = self._history.at(mark.before) if isinstance(mark, Head) else None
        after = self._history.at(mark.after) if isinstance(mark, Head) else None
        if not isinstance(before, Checkpoint) or not isinstance(after, Checkpoint) or self._files.why_not():
            return Moved(self._append(head), Plan([]), [])
        span = Span(before, after, f"{mark.why} {mark.seq}" if isinstance(mark, Head) else why)

        def plan(now: Checkpoint) -> Plan:
            return self._files.plan(before, now, [span])

        return self._move(head, plan)

    def _stay(self, why: str) -> Head:
        state = self._history.state
        return Head(to=state.head, asof=state.seq, why=why, left=state.head, facts=state.facts, system=state.system)

    def _move(self, head: Head, make: Callable[[Checkpoint], Plan]) -> Moved:
        with self._store.keeping():
            before = self._checkpoint("before")
            plan = make(before)
            intent: Intent = self._appender.append([self._files.intent(plan, before, head)])[0]
            outcomes = self._files.run(plan.to_do)
            return self._done(head, intent, plan, outcomes)

    def _done(self, head: Head, intent: Intent, plan: Plan, outcomes: list[Outcome]) -> Moved:
        after = self._checkpoint("after")
        counts: dict[str, int] = {}
        for outcome in outcomes:
            name = outcome.step.action if outcome.is_done else "kept"
            counts[name] = counts.get(name, 0) + 1
        for step in plan.steps:
            if step not in plan.to_do:
                counts[step.action] = counts.get(step.action, 0) + 1
        entry = self._append(replace(head, before=intent.before, after=after.seq, intent=intent.seq, files=counts))
        return Moved(entry, plan, [outcome for outcome in outcomes if not outcome.is_done])

    def _checkpoint(self, when: str) -> Checkpoint:
        with self._store.pack() as pack:
            draft = self._files.snapshot(pack, when=when)
        return self._appender.append([draft])[0]

    def _append(self, head: Head) -> Head:
        return self._appender.append([head])[0]

    # ── what was interrupted ──────────────────────────────────────────────────────────────────────

    def interrupted(self) -> Intent | None:
        """A change of files that was begun and not finished, if the process that began it is gone."""
        seq = self._history.state.intent
        entry = self._history.whole(self._history.at(seq)) if seq else None
        return entry if isinstance(entry, Intent) else None

    def finish_interrupted(self, *, abort: bool = False) -> Moved | None:
        """Finish an interrupted change of files, or take back what was done of it."""
        intent = self.interrupted()
        if intent is None:
            return None
        self._refuse_running(intent)
        if self._files.why_not():
            raise NotFound(f"an interrupted rewind cannot be finished: {self._files.why_not()}")
        steps = steps_of(intent)
        if abort:
            steps = [replace(step, now=step.then, then=step.now) for step in steps]
            head = self._stay("abort")
        else:
            head = msgspec.convert(intent.head, Head, str_keys=True)
        with self._store.keeping():
            outcomes = self._files.run(steps)
            return self._done(head, intent, Plan(steps), outcomes)

    def _refuse_running(self, intent: Intent) -> None:
        for who in self._history.state.writers.values():
            if who.get("pid") != os.getpid() and is_alive(who) and self._wrote(who, intent):
                raise Conflict(
                    f"process {who['pid']} is in the middle of a rewind", hint="wait until it is done, or end it"
                )

    def _wrote(self, who: dict[str, Any], intent: Intent) -> bool:
        word = intent.id.partition("-")[0]
        return self._history.state.writers.get(word) is who


def _no_files(asked: bool, why: str) -> str:
    if not asked:
        return "only the conversation was moved"
    return f"only the conversation was moved: {why or 'there is no checkpoint that far back'}"


def summary(steps: list[Step]) -> dict[str, int]:
    """How many steps of each kind."""
    counts: dict[str, int] = {}
    for step in steps:
        counts[step.action] = counts.get(step.action, 0) + 1
    return counts
