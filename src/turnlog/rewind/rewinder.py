"""Rewind, undo and redo, files and conversation together: a plan, a checkpoint of now, the change, an entry.

After an interruption, the intent in the log tells what was to be done. Each path is compared: as before means to apply
the step, as after means that it is done, anything else is another writer's work and stays.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Conflict, Corrupt, NotFound, TurnlogError, TurnlogWarning
from turnlog.log.entry import Checkpoint, Head, Intent
from turnlog.rewind.files import Files
from turnlog.rewind.intent import HINT, head_of, is_elsewhere, make_intent, makes_root, pending_in, running_in, steps_of
from turnlog.rewind.planner import Planner
from turnlog.thread.appender import Appender
from turnlog.thread.target import move_back
from turnlog.workspace.plan import Plan, Step, taken_back
from turnlog.workspace.restore import Outcome


class Rewound(Struct, frozen=True):
    """The result of a rewind: its entry, its plan, and what could not be done."""

    entry: Head
    plan: Plan
    problems: list[Outcome]
    notes: list[Outcome] = []
    """Files that were restored without an owner or an attribute that the system does not allow to set."""


class Rewinder:
    """Rewinds one session, and undoes and redoes that."""

    def __init__(self, appender: Appender, files: Files, planner: Planner) -> None:
        self._store = files.store
        self._appender = appender
        self._history = appender.history
        self._files = files
        self._coverage = files.coverage
        self._planner = planner
        self.problems: list[Outcome] = []
        """What the last move could not do to files, and why."""
        self.notes: list[Outcome] = []
        """Files that the last move restored without an owner or an attribute."""

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def rewind(
        self, head: Head, *, files: bool, conversation: bool, only: Sequence[str] = (), force: bool = False,
        plan: str | None = None,
    ) -> Rewound:  # fmt: skip
        """Rewind the conversation to `head`, and the files to the last checkpoint before it.

        `plan` is the digest of the plan that was shown: any other plan is a `Conflict`.
        """
        selected = self._planner.selection(only)
        finished = self.finish_interrupted() if files else None
        if finished is not None and not force and _is_same(finished.entry, head):
            return finished  # the caller repeated the interrupted move
        head = replace(head, left=self._appender.state.head)
        target = self._planner.target(head.asof) if files else None
        if not conversation:
            head = self._stay(head.why)
        if target is None:
            plan_made = self._planner.no_files() if files else Plan([], "only the conversation moves")
            _refuse_other(plan_made, plan)
            return Rewound(self._append(head), plan_made, [])
        return self._move(head, lambda now: self._planner.plan_to(target, now, selected, force), plan)

    def take_back(self, why: str, *, force: bool = False, plan: str | None = None) -> Rewound:
        """Undo or redo: return to what was there before the newest rewind, or the newest undo."""
        finished = self.finish_interrupted()
        if finished is not None and finished.entry.why == why:
            return finished  # the caller repeated the interrupted move
        state = self._appender.state
        moves = state.undo if why == "undo" else state.redo
        if not moves:
            raise NotFound("there is no rewind to undo" if why == "undo" else "there is no undo to take back")
        move = moves[-1]
        head = move_back(self._history, move, why)
        make = self._planner.plan_maker_for_undo(move, force=force)
        if make is not None:
            return self._move(head, make, plan)
        _refuse_other(self._planner.plan_back(move, force=force), plan)
        return Rewound(self._append(head), Plan([]), [])

    def _stay(self, why: str) -> Head:
        state = self._history.state
        return Head(to=state.head, asof=state.seq, why=why, left=state.head, facts=state.facts, system=state.system)

    def _move(self, head: Head, make: Callable[[Checkpoint], Plan], confirmed: str | None) -> Rewound:
        with self._store.keeping():
            draft = self._coverage.take(when="before")
            if confirmed is not None:
                _refuse_other(make(draft), confirmed)
            before = self._appender.append([draft])[0]
            plan = make(before)
            intent = self._begin(make_intent(plan, before, head))
            return self._done(head, intent, plan, self._files.carry_out(intent, plan.to_do))

    def _begin(self, draft: Intent) -> Intent:
        """Append the intent.

        `Conflict` if another process moves files, or appended a node that the head would leave.
        """
        while True:
            self._appender.catch_up()
            self._appender.refuse_foreign_nodes()
            other = pending_in(self._history)
            if other is not None:
                raise self._busy(other)
            try:
                return self._appender.append([draft], alone=True)[0]
            except Conflict:
                continue  # another process appended an entry since `catch_up`

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
        return self._appender.append([self._coverage.take(when=when)])[0]

    def _append(self, head: Head) -> Head:
        return self._appender.append([head])[0]

    # ── what was interrupted ──────────────────────────────────────────────────────────────────────

    def finish_interrupted(self, *, abort: bool = False, asked: bool = False) -> Rewound | None:
        """Finish an interrupted change of files, or with `abort`, take back what was done of it.

        A change that was begun on another machine is only touched if the user `asked` for it.
        """
        self._appender.catch_up()
        intent = pending_in(self._history)
        if intent is None:
            return None
        if running_in(intent, self._history.state.writers) or (is_elsewhere(intent) and not asked):
            raise self._busy(intent)
        missing = self._coverage.why_not() or self._coverage.missing()
        if missing and abort:  # there are no files to take back, and the session must not be stuck with it
            return Rewound(self._append(replace(self._stay("abort"), intent=intent.seq)), Plan([]), [])
        if missing:
            self._refuse_missing(intent, missing)
        steps, head = self._steps_back(intent) if abort else self._steps_on(intent)
        with self._store.keeping():
            return self._done(head, intent, Plan(steps), self._files.carry_out(intent, steps, again=True))

    def _refuse_missing(self, intent: Intent, missing: str) -> None:
        """Raise `NotFound` unless the change itself creates the missing workspace."""
        if not makes_root(intent):
            raise NotFound(
                f"an interrupted rewind cannot be finished: {missing}",
                hint="bring the folder back, or forget the rewind with `turnlog rewind --abort`",
            )
        self._files.refuse_missing()

    def _steps_on(self, intent: Intent) -> tuple[list[Step], Head]:
        """The steps that finish a change, and the head after it."""
        head = head_of(intent)
        if head.left != self._appender.state.head:
            # The conversation continued since: its head stays.
            head = replace(self._stay(head.why), id=head.id, undoes=head.undoes)
        return steps_of(intent), head

    def _steps_back(self, intent: Intent) -> tuple[list[Step], Head]:
        """The steps that take a change back, and the head after it; no steps if the intent cannot be read."""
        try:
            steps, _ = steps_of(intent), head_of(intent)
        except Corrupt:
            steps = []
        return [taken_back(step) for step in steps], self._stay("abort")

    def settle(self) -> None:
        """Finish an interrupted move; if that fails, warn, and let the work continue."""
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
    """Raise `Conflict` if the plan is not the one that was shown and confirmed."""
    if confirmed is not None and plan.digest != confirmed:
        raise Conflict("something changed since the plan was shown: nothing was done", hint="look at the plan again")


def _is_same(newest: Head, wanted: Head) -> bool:
    return (newest.why, newest.to, newest.asof) == (wanted.why, wanted.to, wanted.asof)
