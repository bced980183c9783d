"""Which files of a session checkpoints cover, and taking one. Small, because every turn loads it."""

from __future__ import annotations

from turnlog.errors import Invalid, NotFound, OutOfSpace, Unavailable
from turnlog.log.entry import Checkpoint
from turnlog.machine.workspacetop import refuses_checkpoints
from turnlog.rewind.snapshot import Progress, Snapshots, workspace_folder, workspace_of
from turnlog.store import Store
from turnlog.thread.history import History
from turnlog.thread.home.settings import Settings
from turnlog.workspace.rootfolder import permissions_of
from turnlog.workspace.sink import DigestOnlySink


class Coverage:
    """The files of one session that checkpoints cover."""

    def __init__(self, store: Store, history: History, settings: Settings) -> None:
        self._store = store
        self._history = history
        self._settings = settings
        self._snapshots = Snapshots(store, settings)
        self.is_full = False
        """Whether a checkpoint failed for lack of space."""

    def why_not(self) -> str:
        """The reason why this session has no checkpoints; empty if it can have some."""
        state = self._history.state
        workspace, folder = workspace_of(state), workspace_folder(state)
        if folder is None:
            return "" if self._history.state.tracked else "the session has no workspace"
        refused = refuses_checkpoints(folder)
        return f"{workspace} is never scanned: {refused}" if refused else ""

    def missing(self) -> str:
        """The reason why the workspace is missing; empty if it exists."""
        workspace, folder = workspace_of(self._history.state), workspace_folder(self._history.state)
        if folder is None:
            return ""
        try:
            is_there = permissions_of(folder) is not None
        except OSError as error:
            raise Unavailable(f"{workspace} cannot be looked at: {error.strerror or error}") from error
        return "" if is_there else f"the folder {workspace} is gone"

    def take(
        self, *, label: str | None = None, when: str | None = None, progress: Progress | None = None
    ) -> Checkpoint:
        """Take a checkpoint of the files as they are now, as a draft. New content is durable when this returns.

        The caller is inside `keeping` until the entry is in the log.
        """
        self.refuse()
        if when in (None, "begin") and (missing := self.missing()):
            raise NotFound(f"no checkpoint: {missing}", hint="`turnlog rewind` brings it back")
        tell = progress or self.progress("scanning")
        try:
            return self._snapshots.take(self._history.state, label=label, when=when, progress=tell)
        except OutOfSpace:
            self.is_full = True
            raise

    def look(self) -> tuple[Checkpoint, DigestOnlySink]:
        """Examine the files as they are now; nothing is written. The sink has the trees."""
        self.refuse()
        return self._snapshots.look(self._history.state, self.progress("scanning"))

    def refuse(self) -> None:
        """Raise `Invalid` if this session has no checkpoints."""
        refused = self.why_not()
        if refused:
            raise Invalid(
                f"no checkpoint: {refused}", hint="create it with a project folder as workspace, or s.track(path)"
            )

    def progress(self, what: str) -> Progress | None:
        """Where to report the progress of this work."""
        tell = self._settings.progress
        return None if tell is None else lambda number: tell(what, number)
