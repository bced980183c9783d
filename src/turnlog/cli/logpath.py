"""Where the file of a session is, in a home that keeps files."""

from __future__ import annotations

from pathlib import Path

from turnlog.cli.draw.text import one_line
from turnlog.errors import NotFound, Unsupported
from turnlog.log.ids import handle_of
from turnlog.session import Home


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
