"""Names of sessions for a shell that completes one: the catalog as it is. Nothing is read anew, nothing is written."""

from __future__ import annotations

import os

from turnlog.catalog.index.sqlite.names import names_in
from turnlog.errors import Unsupported
from turnlog.machine.environment import cache_folders, default_home
from turnlog.machine.location import folder_of, key_of

_MOST = 200


def names_beginning(location: str | None, start: str) -> list[tuple[str, str]]:
    """The sessions that begin like this, the newest first: what to type for each, and what it is about."""
    place = location or default_home()
    try:
        folder = folder_of(place)
        path = os.path.join(next(cache_folders()), f"{key_of(place)}.sqlite")
    except Unsupported:
        return []
    names = names_in(path, start, _MOST)
    if names is not None:
        return names
    return _files(folder, start) if folder else []


def _files(folder: str, start: str) -> list[tuple[str, str]]:
    """There is no catalog yet: our own sessions, by their files."""
    from turnlog.store.files.names import session_id_of

    try:
        names = [session_id_of(entry.name) for entry in os.scandir(f"{folder}/sessions")]
    except OSError:
        return []
    return [(name, "") for name in sorted(filter(None, names), reverse=True) if name.startswith(start)][:_MOST]
