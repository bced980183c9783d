"""What a rewind, an undo or a redo would do to files. Nothing is touched and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable

from turnlog.log.entry import Checkpoint, Head, Intent
from turnlog.log.fold import Undoable
from turnlog.rewind.chronology import folder_path
from turnlog.rewind.files import Files
from turnlog.rewind.intent import paths_of
from turnlog.rewind.others import work_of_others
from turnlog.rewind.span import Span
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.workspace.diff import Difference
from turnlog.workspace.plan import Plan
from turnlog.workspace.tree import path_bytes


class Planner:
    """Plans for one session."""

    def __init__(self, store: Store, history: History, files: Files) -> None:
        self._store = store
        self._history = history
        self._files = files

    def target(self, asof: int) -> Checkpoint | None:
        """The checkpoint that files go back to for a conversation as of that entry."""
        checkpoint = None if self._files.why_not() else self._files.at_or_before(asof)
        if checkpoint is not None:
            self._files.refuse_missing()
        return checkpoint

    def plan(self, asof: int, *, only: list[str] | None = None, force: bool = False) -> Plan:
        """What a rewind would do, as the files are now."""
        target = self.target(asof)
        if target is None:
            return self.no_files()
        return self.plan_to(target, self._files.look(), only, force)

    def plan_to(self, target: Checkpoint, now: Checkpoint, only: list[str] | None, force: bool) -> Plan:
        """What going back from one checkpoint to another would do, but for what others did meanwhile."""
        others = work_of_others(self._store, self._history, target)
        return self._files.plan(target, now, self._files.spans_since(target), others=others, only=only, force=force)

    def without_others(self, before: Checkpoint, after: Checkpoint, differences: list[Difference]) -> list[Difference]:
        """The same differences without those that are surely of other sessions, which worked at the same time."""
        others = {work.session for work in work_of_others(self._store, self._history, before, after)}
        if not others or not differences:
            return differences
        testimony = self._files.testimony(others, before, after)
        folder = folder_path(str(self._history.state.wide.get("workspace") or "/"))
        return [
            item for item in differences if testimony.is_ours(os.path.join(folder, path_bytes(item.path))) is not False
        ]

    def plan_back(self, move: Undoable, *, force: bool = False) -> Plan:
        """What taking a move back would do, as the files are now."""
        plan = self.planner_back(move, force=force)
        return self.no_files("no files were moved then") if plan is None else plan(self._files.look())

    def planner_back(self, move: Undoable, *, force: bool) -> Callable[[Checkpoint], Plan] | None:
        """The same for a checkpoint of now that is yet to be taken; None where that move changed no files."""
        mark = self._history.at(move.back + 1)
        before = self._files.kept_at(mark.before) if isinstance(mark, Head) else None
        after = self._files.kept_at(mark.after) if isinstance(mark, Head) else None
        if not isinstance(mark, Head) or before is None or after is None:
            return None
        intent = self._history.at(mark.intent) if mark.intent else None
        paths = paths_of(self._history.whole(intent), mark) if isinstance(intent, Intent) else None
        span = Span(before, after, f"{mark.why} {mark.seq}", paths)
        if self._files.why_not():
            return None
        self._files.refuse_missing()
        return lambda now: self._files.plan(before, now, [span], force=force)

    def no_files(self, why: str = "there is no checkpoint that far back") -> Plan:
        """The plan where files stay as they are, and why they do."""
        return Plan([], f"only the conversation moves: {self._files.why_not() or why}")
