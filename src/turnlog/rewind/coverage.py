"""What of a session's files is covered by checkpoints, and taking one: all that a turn needs, and quick to load."""

from __future__ import annotations

import os

from turnlog.errors import Invalid, NotFound, OutOfSpace, Unavailable
from turnlog.log.entry import Checkpoint
from turnlog.machine.folder import refuses_checkpoints
from turnlog.rewind.snapshot import Progress, Snapshots
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.thread.settings import Settings
from turnlog.workspace.folder import permissions_of
from turnlog.workspace.tree import path_bytes


class Coverage:
    """The files of one session, as far as checkpoints are taken of them."""

    def __init__(self, store: Store, history: History, settings: Settings) -> None:
        self._store = store
        self._history = history
        self._settings = settings
        self._snapshots = Snapshots(store, settings)
        self.is_full = False
        """Whether there was no room for a checkpoint."""

    def why_not(self) -> str:
        """Why there are no checkpoints of this session; empty if there are."""
        workspace = self._history.state.wide.get("workspace")
        if not workspace:
            return "" if self._history.state.tracked else "the session has no workspace"
        refused = refuses_checkpoints(os.fsdecode(path_bytes(str(workspace))))
        return f"{workspace} is never scanned: {refused}" if refused else ""

    def missing(self) -> str:
        """What is to be said where the workspace is not there now; empty if it is."""
        workspace = self._history.state.wide.get("workspace")
        if not workspace:
            return ""
        try:
            is_there = permissions_of(os.fsdecode(path_bytes(str(workspace)))) is not None
        except OSError as error:
            raise Unavailable(f"{workspace} cannot be looked at: {error.strerror or error}") from error
        return "" if is_there else f"the folder {workspace} is gone"

    def take(
        self, *, label: str | None = None, when: str | None = None, progress: Progress | None = None
    ) -> Checkpoint:
        """A draft of a checkpoint: the files as they are now. What is new is on the disk when this returns.

        The caller is inside `keeping` until the entry is in the log.
        """
        self._refuse()
        if when in (None, "begin") and (missing := self.missing()):
            raise NotFound(f"no checkpoint: {missing}", hint="`turnlog rewind` brings it back")
        tell = progress or self._telling("scanning")
        try:
            return self._snapshots.take(self._history.state, label=label, when=when, progress=tell)
        except OutOfSpace:
            self.is_full = True
            raise

    def _refuse(self) -> None:
        refused = self.why_not()
        if refused:
            raise Invalid(
                f"no checkpoint: {refused}", hint="create it with a project folder as workspace, or s.track(path)"
            )

    def _telling(self, what: str) -> Progress | None:
        tell = self._settings.progress
        return None if tell is None else lambda number: tell(what, number)
