"""Databases of other agents: opened to be read, and never written to."""

from __future__ import annotations

import sqlite3
from contextlib import closing

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises; its messages may quote bytes of the file."""


def connect(path: str) -> sqlite3.Connection:
    """Read-only; where the folder cannot be written to, without the log that others may be writing."""
    place = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        base = sqlite3.connect(f"file:{place}?mode=ro", uri=True, timeout=5)
        base.execute("select count(*) from sqlite_master")
    except (sqlite3.OperationalError, UnicodeDecodeError):
        base = sqlite3.connect(f"file:{place}?mode=ro&immutable=1", uri=True, timeout=5)
    base.row_factory = sqlite3.Row
    base.text_factory = _text
    return base


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def columns(path: str) -> dict[str, set[str]]:
    """The tables of a database with their columns; none for a file that is no database."""
    try:
        with open(path, "rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return {}
        with closing(connect(path)) as base:
            names = [str(row[0]) for row in base.execute("select name from sqlite_master where type = 'table'")]
            return {
                name: {str(row[0]) for row in base.execute("select name from pragma_table_info(?)", (name,))}
                for name in names[:1000]
            }
    except (OSError, *ERRORS):
        return {}
