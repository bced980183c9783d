"""Places on the disk: the log file of a session, and folders that have no checkpoints."""

from __future__ import annotations

import os
from pathlib import Path

from turnlog.cli.draw.text import one_line
from turnlog.errors import Invalid, NotFound, Unsupported
from turnlog.log.ids import handle_of
from turnlog.session import Home
from turnlog.workspace.tree import path_bytes


def folder_of(home: Home, *, hint: str | None = None) -> str:
    """The home folder; a store that keeps no files has none."""
    from turnlog.store.files import FileStore

    if not isinstance(home.store, FileStore):
        raise Unsupported(f"the {home.backend} store keeps no files", hint=hint or "this needs a home that is a folder")
    return home.store.folder


def log_path(home: Home, session_id: str) -> str:
    """The file of a session, deleted or not."""
    from turnlog.store.files.names import file_name

    instead = f"`turnlog log {one_line(handle_of(session_id))} --json` prints what is in it"
    folder = Path(folder_of(home, hint=instead))
    for place in ("sessions", "trash", "bases"):
        path = folder / place / file_name(session_id)
        if path.exists():
            return str(path)
    raise NotFound(f"the file of session {session_id!r} is gone", hint="see `turnlog ls`")


def refuse_folder(folder: str) -> None:
    """Raise `Invalid` for a folder of which there are no checkpoints, before anything is written."""
    from turnlog.machine.folder import refuses_checkpoints, workspace_path

    place = workspace_path(folder)
    if not Path(os.fsdecode(path_bytes(place))).is_dir():
        raise NotFound(f"the folder {place} is gone", hint="`cd` to one that is there")
    reason = refuses_checkpoints(place)
    if reason:
        raise Invalid(f"no checkpoints of {place}: {reason}", hint="go to the folder of a project")
