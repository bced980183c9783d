"""Names of sessions for completion in a shell. The catalog is neither refreshed nor written."""

from __future__ import annotations

import os

from turnlog.catalog.index.sqlite.names import names_in
from turnlog.errors import Unsupported
from turnlog.layout import SESSIONS, TRASH
from turnlog.machine.environment import default_home, existing_cache
from turnlog.machine.location import folder_of, key_of

_MOST = 200


def names_beginning(location: str | None, start: str) -> list[tuple[str, str]]:
    """The names that begin with `start`, newest session first, each with what the session is about."""
    home = location or default_home()
    try:
        folder = folder_of(home)
        path = os.path.join(existing_cache(), f"{key_of(home)}.sqlite")
    except Unsupported:
        return []
    names = names_in(path, start, _MOST)
    if names is not None:
        return names
    return [(name, "") for name in _files(folder, SESSIONS, start)] if folder else []  # there is no catalog yet


def deleted_beginning(location: str | None, start: str) -> list[str]:
    """The ids of deleted sessions that begin with `start`, newest first."""
    try:
        folder = folder_of(location or default_home())
    except Unsupported:
        return []
    return _files(folder, TRASH, start) if folder else []


def _files(home: str, folder: str, start: str) -> list[str]:
    """Our own sessions, from the names of their files."""
    from turnlog.store.files.names import session_id_of

    try:
        names = [session_id_of(entry.name) for entry in os.scandir(os.path.join(home, folder))]
    except OSError:
        return []
    return [name for name in sorted(filter(None, names), reverse=True) if name.startswith(start)][:_MOST]
