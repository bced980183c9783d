"""The files of a home that keeps sessions in files."""

from __future__ import annotations

from turnlog.errors import Unsupported
from turnlog.log.ids import handle_of
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store.capability import KeepFiles, ability
from turnlog.view.visible import quoted


def files_of(home: Home, *, hint: str = "this needs a home that is a folder") -> KeepFiles:
    """Return the store of a home as one that keeps files. Raises `Unsupported`."""
    files = ability(interior(home).store, KeepFiles)
    if files is None:
        raise Unsupported(f"the {home.backend} store keeps no files", hint=hint)
    return files


def log_path(home: Home, session_id: str) -> str:
    """Return the path of the file of a session, deleted or not."""
    instead = f"`turnlog log {quoted(handle_of(session_id))} --json` prints what is in it"
    return files_of(home, hint=instead).file_of(session_id)
