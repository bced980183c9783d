"""Plans for a rewind, an undo or a redo. Nothing is changed and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from turnlog.log.entry import Checkpoint, Head, Intent
from turnlog.log.fold import Undoable
from turnlog.log.part import Root, same_root
from turnlog.rewind.attribution import Attribution
from turnlog.rewind.files import Files
from turnlog.rewind.intent import paths_of
from turnlog.rewind.others import ForeignSpan, work_of_others
from turnlog.rewind.rootplan import PlanRequest, RootPlanner
from turnlog.rewind.selection import EVERYTHING, Selection, selection
from turnlog.rewind.snapshot import workspace_of
from turnlog.rewind.span import Span, spans
from turnlog.workspace.git import git_left
from turnlog.workspace.plan import Plan


class Planner:
    """Plans for one session."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._coverage = files.coverage
        self._store = files.store
        self._history = files.history

    # ── rewinds ───────────────────────────────────────────────────────────────────────────────────

    def target(self, asof: int) -> Checkpoint | None:
        """The checkpoint that files go back to for a conversation as of entry `asof`."""
        checkpoint = None if self._coverage.why_not() else self._files.at_or_before(asof)
        if checkpoint is not None:
            self._files.refuse_missing()
        return checkpoint

    def plan(self, asof: int, *, only: Sequence[str] = (), force: bool = False) -> Plan:
        """The plan of a rewind, for the files as they are now."""
        target, selected = self.target(asof), self.selection(only)
        if target is None:
            return self.no_files()
        return self.plan_to(target, self._files.look(), selected, force)

    def selection(self, paths: Sequence[str]) -> Selection:
        """The selection of these paths; without any, of everything."""
        return selection(paths, workspace_of(self._history.state))

    def plan_to(self, target: Checkpoint, now: Checkpoint, selected: Selection, force: bool) -> Plan:
        """The plan for going back from checkpoint `now` to `target`, without the work of others."""
        others = work_of_others(self._store, self._history, target)
        own = self._spans_since(target)
        if own is None:
            note = "no turn of the session since, so everything that changed counts as the session's"
            own = [Span(target, now, "the time since the checkpoint")]
        elif any(span.is_theirs for span in own):
            note = "no turn of the session since, so whatever else changed was changed by somebody else"
        else:
            note = ""
        return self._plan_between(target, now, own, others, selected, force=force, note=note)

    def _spans_since(self, target: Checkpoint) -> list[Span] | None:
        """The session's own work after a checkpoint, in order. A turn that contains the checkpoint counts from there.

        None if everything since goes back: for a caller that never brackets its turns, even if it rewound, and for an
        explicit checkpoint that no turn came after.
        """
        history = self._history
        if not any(isinstance(entry, Checkpoint) and entry.when == "begin" for entry in history.forward()):
            return None
        is_asked_for = target.when is None and target.turn is None
        if is_asked_for and all(entry.turn is None for entry in history.forward(target.seq)):
            return None
        own = spans(self._store, history, history.forward(), target)
        if not any(span.is_turn for span in own):
            own.append(Span(target, None, "the time since the checkpoint", is_theirs=True))
        return own

    # ── undo and redo ─────────────────────────────────────────────────────────────────────────────

    def plan_back(self, move: Undoable, *, force: bool = False) -> Plan:
        """The plan for taking a move back, for the files as they are now."""
        plan = self.plan_maker_for_undo(move, force=force)
        return self.no_files("no files were moved then") if plan is None else plan(self._files.look())

    def plan_maker_for_undo(self, move: Undoable, *, force: bool) -> Callable[[Checkpoint], Plan] | None:
        """A function that makes that plan, given a checkpoint of now; None if the move changed no files."""
        mark = self._history.at(move.back + 1)
        before = self._files.kept_at(mark.before) if isinstance(mark, Head) else None
        after = self._files.kept_at(mark.after) if isinstance(mark, Head) else None
        if not isinstance(mark, Head) or before is None or after is None:
            return None
        intent = self._history.at(mark.intent) if mark.intent else None
        paths = paths_of(self._history.whole(intent), mark) if isinstance(intent, Intent) else None
        span = Span(before, after, f"{mark.why} {mark.seq}", paths)
        if self._coverage.why_not():
            return None
        self._files.refuse_missing()
        return lambda now: self._plan_between(before, now, [span], (), EVERYTHING, force=force)

    # ── both ──────────────────────────────────────────────────────────────────────────────────────

    def no_files(self, why: str = "there is no checkpoint that far back") -> Plan:
        """An empty plan, with the reason why no files move."""
        return Plan([], f"only the conversation moves: {self._coverage.why_not() or why}")

    def _plan_between(
        self,
        target: Checkpoint,
        now: Checkpoint,
        own: list[Span],
        others: Collection[ForeignSpan],
        selected: Selection,
        *,
        force: bool,
        note: str = "",
    ) -> Plan:
        """The plan for going back to `target`, given the session's own work since and that of others."""
        attribution = Attribution(self._files, {work.session for work in others}, target, now)
        filled = self._files.filled(target, None)
        request = PlanRequest(filled, now, own, list(others), attribution, selected, force)
        # The tree of a private root is laid over that of the workspace.
        roots = [root for root in filled.roots if not root.is_private]
        steps = [step for root in roots for step in RootPlanner(self._files, request, root).steps()]
        late = [f"what happened in {root.path} before it was first seen stays" for root in _added(target, filled)]
        return Plan(steps, "; ".join(filter(None, (note, git_left(target.git, now.git), *late))))


def _added(before: Checkpoint, after: Checkpoint) -> list[Root]:
    """The folders that only `after` has."""
    return [root for root in after.roots if not root.is_private and same_root(before.roots, root) is None]
