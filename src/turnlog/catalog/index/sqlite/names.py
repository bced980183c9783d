"""Names of sessions, read from a catalog without checking, writing or waiting for locks."""

from __future__ import annotations

import os
import sqlite3
from urllib.parse import quote

_WAIT_S = 0.2
_NAMES = """
SELECT CASE WHEN substr(name, 1, ?1) = ?2 THEN name ELSE native END, coalesce(title, preview) FROM sessions
WHERE (substr(name, 1, ?1) = ?2 OR substr(native, 1, ?1) = ?2)
AND NOT is_deleted AND NOT is_copied AND NOT is_hidden AND parent IS NULL ORDER BY updated DESC LIMIT ?3
"""


def names_in(path: str, start: str, most: int) -> list[tuple[str, str]] | None:
    """Names that begin with `start`, newest first, each with what it is about; None if the file cannot be read."""
    try:
        start.encode()
    except UnicodeEncodeError:
        return []  # bytes that are not UTF-8: no name has them
    try:
        database = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, timeout=_WAIT_S)
        try:
            rows = database.execute(_NAMES, (len(start), start, most)).fetchall()
        finally:
            database.close()
    except sqlite3.Error:
        return None
    return [(str(name), str(about)) for name, about in rows]
