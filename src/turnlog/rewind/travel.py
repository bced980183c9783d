"""Rewind, undo and redo, files and conversation together: a plan, a checkpoint of now, the change, an entry.

Interrupted half-way, the intent in the log says what was to be done. Per path: as before means apply, as after means
done, anything else is somebody's work and stays.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Conflict, Corrupt, NotFound, TurnlogError, TurnlogWarning
from turnlog.log.entry import Checkpoint, Head, Intent
from turnlog.rewind.files import Files
from turnlog.rewind.intent import HINT, head_of, is_elsewhere, make_intent, makes_root, pending_in, running_in, steps_of
from turnlog.rewind.planner import Planner
from turnlog.store import Store
from turnlog.thread.appender import Appender
from turnlog.thread.target import move_back
from turnlog.workspace.plan import Plan
from turnlog.workspace.restore import Outcome


class Rewound(Struct, frozen=True):
    """What a rewind did: its entry, its plan, and what could not be done."""

    entry: Head
    plan: Plan
    problems: list[Outcome]
    notes: list[Outcome] = []
    """What was done, but for an owner or an attribute that the system does not allow to set."""


class Travel:
    """Moves one session back and forth."""

    def __init__(self, store: Store, appender: Appender, files: Files, planner: Planner) -> None:
        self._store = store
        self._appender = appender
        self._history = appender.history
        self._files = files
        self._planner = planner
        self.problems: list[Outcome] = []
        """What the last move could not do to files, and why."""
        self.notes: list[Outcome] = []
        """What it did, but for an owner or an attribute."""

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def rewind(
        self, head: Head, *, files: bool, conversation: bool, only: list[str] | None = None, force: bool = False,
        plan: str | None = None,
    ) -> Rewound:  # fmt: skip
        """Go back: the conversation as `head` says, the files to the last checkpoint before it.

        `plan` is the digest of the one that was shown: nothing is done by any other.
        """
        finished = self.finish_interrupted() if files else None
        if finished is not None and not force and _is_same(finished.entry, head):
            return finished  # it was asked for again
        head = replace(head, left=self._appender.state.head)
        target = self._planner.target(head.asof) if files else None
        if not conversation:
            head = self._stay(head.why)
        if target is None:
            plan_made = self._planner.no_files() if files else Plan([], "only the conversation moves")
            _refuse_other(plan_made, plan)
            return Rewound(self._append(head), plan_made, [])
        return self._move(head, lambda now: self._planner.plan_to(target, now, only, force), plan)

    def take_back(self, why: str, *, force: bool = False, plan: str | None = None) -> Rewound:
        """Undo or redo: back to what was there before the newest rewind, or the newest undo."""
        finished = self.finish_interrupted()
        if finished is not None and finished.entry.why == why:
            return finished  # it was asked for again
        state = self._appender.state
        moves = state.undo if why == "undo" else state.redo
        if not moves:
            raise NotFound("there is no rewind to undo" if why == "undo" else "there is no undo to take back")
        move = moves[-1]
        head = move_back(self._history, move, why)
        make = self._planner.planner_back(move, force=force)
        if make is not None:
            return self._move(head, make, plan)
        _refuse_other(self._planner.plan_back(move, force=force), plan)
        return Rewound(self._append(head), Plan([]), [])

    def _stay(self, why: str) -> Head:
        state = self._history.state
        return Head(to=state.head, asof=state.seq, why=why, left=state.head, facts=state.facts, system=state.system)

    def _move(self, head: Head, make: Callable[[Checkpoint], Plan], confirmed: str | None) -> Rewound:
        with self._store.keeping():
            draft = self._files.take(when="before")
            if confirmed is not None:
                _refuse_other(make(draft), confirmed)
            before = self._appender.append([draft])[0]
            plan = make(before)
            intent = self._begin(make_intent(plan, before, head))
            return self._done(head, intent, plan, self._files.run(intent, plan.to_do))

    def _begin(self, draft: Intent) -> Intent:
        """Nobody else moves this session's files at the same time, or said something that its head would leave."""
        while True:
            self._appender.catch_up()
            self._appender.refuse_news()
            other = pending_in(self._history)
            if other is not None:
                raise self._busy(other)
            try:
                return self._appender.append([draft], alone=True)[0]
            except Conflict:
                continue  # somebody appended something since we looked

    def _done(self, head: Head, intent: Intent, plan: Plan, outcomes: list[Outcome]) -> Rewound:
        after = self._checkpoint("after")
        counts = Counter(outcome.step.action if outcome.is_done else "kept" for outcome in outcomes)
        counts.update(step.action for step in plan.staying)
        self.problems = [outcome for outcome in outcomes if not outcome.is_done]
        self.notes = [outcome for outcome in outcomes if outcome.note]
        head = replace(head, before=intent.before, after=after.seq, intent=intent.seq, files=dict(counts))
        entry = self._append(replace(head, kept=self._files.kept(intent, self.problems)))
        return Rewound(entry, plan, self.problems, self.notes)

    def _checkpoint(self, when: str) -> Checkpoint:
        return self._appender.append([self._files.take(when=when)])[0]

    def _append(self, head: Head) -> Head:
        return self._appender.append([head])[0]

    # ── what was interrupted ──────────────────────────────────────────────────────────────────────

    def finish_interrupted(self, *, abort: bool = False, asked: bool = False) -> Rewound | None:
        """Finish an interrupted change of files, or take back what was done of it.

        One that was begun on another machine is only touched when somebody `asked` for it.
        """
        self._appender.catch_up()
        intent = pending_in(self._history)
        if intent is None:
            return None
        if running_in(intent, self._history.state.writers) or (is_elsewhere(intent) and not asked):
            raise self._busy(intent)
        missing = self._files.why_not() or self._files.missing()
        if missing and abort:  # there are no files to take back, and nobody should be stuck with it
            return Rewound(self._append(replace(self._stay("abort"), intent=intent.seq)), Plan([]), [])
        if missing and not makes_root(intent):
            raise NotFound(
                f"an interrupted rewind cannot be finished: {missing}",
                hint="bring the folder back, or forget the rewind with `turnlog rewind --abort`",
            )
        if missing:
            self._files.refuse_missing()
        try:
            steps, head = steps_of(intent), head_of(intent)
        except Corrupt:
            if not abort:
                raise
            steps, head = [], self._stay("abort")
        if abort:
            steps = [replace(step, now=step.then, then=step.now) for step in steps]
            head = self._stay("abort")
        elif head.left != self._appender.state.head:
            # The conversation went on since: it stays where it is.
            head = replace(self._stay(head.why), id=head.id, undoes=head.undoes)
        with self._store.keeping():
            return self._done(head, intent, Plan(steps), self._files.run(intent, steps, again=True))

    def settle(self) -> None:
        """Finish what was interrupted; where that cannot be done, somebody is told, and work goes on."""
        try:
            with self._history.mutex:
                self.finish_interrupted()
        except TurnlogError as error:
            warnings.warn(f"a rewind that was not finished stays so: {error}", TurnlogWarning, stacklevel=5)

    def _busy(self, intent: Intent) -> Conflict:
        pid = running_in(intent, self._history.state.writers)
        if pid:
            return Conflict(f"process {pid} is in the middle of a rewind", hint="wait until it is done, or end it")
        where = f" on {intent.host}" if is_elsewhere(intent) else ""
        return Conflict(f"a rewind of this session was interrupted{where}", hint=HINT)


def _refuse_other(plan: Plan, confirmed: str | None) -> None:
    """Nothing is done but what somebody saw and agreed to."""
    if confirmed is not None and plan.digest != confirmed:
        raise Conflict("something changed since the plan was shown: nothing was done", hint="look at the plan again")


def _is_same(newest: Head, wanted: Head) -> bool:
    return (newest.why, newest.to, newest.asof) == (wanted.why, wanted.to, wanted.asof)
