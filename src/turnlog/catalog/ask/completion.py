"""Names of sessions for a shell that completes one: the catalog as it is. Nothing is read anew, nothing is written."""

from __future__ import annotations

import os
import sqlite3

from turnlog.errors import Unsupported
from turnlog.machine.environment import cache_folders, default_home
from turnlog.machine.folder import expand
from turnlog.machine.location import key_of

_MOST = 200
_ELSEWHERE = ("memory:", "postgres:", "postgresql:")
_WAIT_S = 0.2
_NAMES = """
SELECT CASE WHEN substr(name, 1, ?1) = ?2 THEN name ELSE native END, coalesce(title, preview) FROM sessions
WHERE (substr(name, 1, ?1) = ?2 OR is_ours AND substr(native, 1, ?1) = ?2)
AND NOT is_deleted AND NOT is_copied AND NOT is_hidden AND parent IS NULL ORDER BY updated DESC LIMIT ?3
"""


def glance(location: str | None, start: str) -> list[tuple[str, str]]:
    """The sessions that begin like this, the newest first: what to type for each, and what it is about."""
    place = location or default_home()
    folder = "" if place.startswith(_ELSEWHERE) else expand(place)
    try:
        path = os.path.join(next(cache_folders()), f"{key_of(place)}.sqlite")
        database = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True, timeout=_WAIT_S)
        try:
            rows = database.execute(_NAMES, (len(start), start, _MOST)).fetchall()
        finally:
            database.close()
    except (sqlite3.Error, Unsupported):
        return _files(folder, start) if folder else []
    return [(str(name), str(about)) for name, about in rows]


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _files(folder: str, start: str) -> list[tuple[str, str]]:
    """There is no catalog yet: our own sessions, by their files."""
    from turnlog.store.files.names import session_id_of

    try:
        names = [session_id_of(entry.name) for entry in os.scandir(f"{folder}/sessions")]
    except OSError:
        return []
    return [(name, "") for name in sorted(filter(None, names), reverse=True) if name.startswith(start)][:_MOST]
