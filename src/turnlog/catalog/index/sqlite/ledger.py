"""What other agents' sessions spent, kept where no cache is thrown away: they delete sessions, and a bill stays a bill.

Numbers only: no title and nothing that was said. It is written whenever a session was read, and read when an index is
made anew, or a session has gone.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import msgspec

from turnlog.catalog.values import COUNTS
from turnlog.errors import TurnlogWarning
from turnlog.machine.environment import state_folder
from turnlog.machine.location import key_of

_FACTS = ("agent", "path", "key", "native", "name", "workspace", "created", "updated", "fork", "parent", "origin")
_SPENT = ("step", "token", "at", "model", "is_reported", "is_total", "cost", *COUNTS)
_VERSION = 1
"""Rises when older versions would misread what is written down."""
_TABLE = f"""
CREATE TABLE IF NOT EXISTS ledger (
    {", ".join(_FACTS)}, spent BLOB NOT NULL, PRIMARY KEY (agent, path, key)
) WITHOUT ROWID
"""


class _Newer(sqlite3.DatabaseError):
    """A newer version wrote it: it is left as it is."""


class Ledger:
    """The file of one home."""

    def __init__(self, location: str) -> None:
        folder = state_folder()
        self.path = os.path.join(folder, "spent", f"{key_of(location)}.sqlite") if folder else ""

    def put(self, db: sqlite3.Connection, sessions: Iterable[int] | None) -> None:
        """Write down what these spent, None for all. A failed write is ignored: it is needed only after a deletion."""
        where = "NOT is_ours AND NOT is_deleted"
        rows = db.execute(f"SELECT id, {', '.join(_FACTS)} FROM sessions WHERE {where}")
        wanted = None if sessions is None else set(sessions)
        entries = ((facts, _spent(db, id)) for id, *facts in rows if wanted is None or id in wanted)
        spent_rows = [(*facts, spent) for facts, spent in entries if spent is not None]
        if not spent_rows or not self.path:
            return
        marks = ", ".join("?" * (len(_FACTS) + 1))
        try:
            with closing(_opened(self.path)) as ledger, ledger:
                ledger.executemany(f"INSERT OR REPLACE INTO ledger VALUES ({marks})", spent_rows)
        except (sqlite3.Error, OSError):
            return

    def missing(self, db: sqlite3.Connection) -> Iterator[tuple[dict[str, Any], list[tuple[Any, ...]]]]:
        """What the index does not know: of each session its columns, and what it spent."""
        if not self.path or not os.path.exists(self.path):
            return
        present = set(db.execute("SELECT agent, path, key FROM sessions WHERE NOT is_ours"))
        try:
            with closing(_opened(self.path)) as ledger:
                entries = ledger.execute(f"SELECT {', '.join(_FACTS)}, spent FROM ledger").fetchall()
        except _Newer:
            problem = "what deleted sessions spent is not counted: a newer Turnlog wrote it down; upgrade this one"
            warnings.warn(problem, TurnlogWarning, stacklevel=2)
            return
        except (sqlite3.Error, OSError):
            return
        for *facts, spent in entries:
            if tuple(facts[:3]) not in present:
                yield dict(zip(_FACTS, facts, strict=True)), msgspec.msgpack.decode(zlib.decompress(spent))


def add_gone(db: sqlite3.Connection, id: int, columns: dict[str, Any], spent: list[tuple[Any, ...]]) -> None:
    """A session that is gone, and counted: nobody lists it, and nothing that was said is in it."""
    named = {"id": id, "is_ours": 0, "is_deleted": 1, **columns}
    db.execute(
        f"INSERT INTO sessions ({', '.join(named)}) VALUES ({', '.join('?' * len(named))})", list(named.values())
    )
    marks = ", ".join("?" * (len(_SPENT) + 1))
    db.executemany(f"INSERT INTO spent (session, {', '.join(_SPENT)}) VALUES ({marks})", [(id, *row) for row in spent])


def _spent(db: sqlite3.Connection, session: int) -> bytes | None:
    rows = db.execute(f"SELECT {', '.join(_SPENT)} FROM spent WHERE session = ?", (session,)).fetchall()
    return zlib.compress(msgspec.msgpack.encode(rows)) if rows else None


def _opened(path: str) -> sqlite3.Connection:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    connection = sqlite3.connect(path, timeout=60)
    try:
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o600)
        [(version,)] = connection.execute("PRAGMA user_version").fetchall()
        if version > _VERSION:
            raise _Newer(f"version {version}")
        if version < _VERSION:
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        connection.close()
        raise
    return connection
