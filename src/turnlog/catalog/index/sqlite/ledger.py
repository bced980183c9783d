"""What other agents' sessions spent, stored outside the cache: the agents delete sessions, but sums have to stay.

Numbers only: no titles, no text. The ledger is written whenever a session was read, and read when an index is
rebuilt or a session is gone.
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
from turnlog.errors import TurnlogWarning, Unavailable
from turnlog.machine.environment import state_folder
from turnlog.machine.location import key_of

_FACTS = ("agent", "path", "key", "native", "name", "workspace", "created", "updated", "fork", "parent", "origin")
_SPENT = ("step", "token", "at", "model", "is_reported", "is_total", "cost", *COUNTS)
_VERSION = 1
"""Incremented when older versions would misread the rows."""
_DECODER = msgspec.msgpack.Decoder(list[tuple[Any, ...]])
_TABLE = f"""
CREATE TABLE IF NOT EXISTS ledger (
    {", ".join(_FACTS)}, spent BLOB NOT NULL, PRIMARY KEY (agent, path, key)
) WITHOUT ROWID
"""


class _Newer(sqlite3.DatabaseError):
    """The file was written by a newer version, and is left unchanged."""


class Ledger:
    """The ledger of one home."""

    def __init__(self, location: str) -> None:
        folder = state_folder()
        self.path = os.path.join(folder, "spent", f"{key_of(location)}.sqlite") if folder else ""

    def put(self, db: sqlite3.Connection, sessions: Iterable[int] | None) -> None:
        """Record what these sessions spent, None for all. A failed write is ignored: it matters after a deletion."""
        where = "NOT is_ours AND NOT is_deleted"
        rows = db.execute(f"SELECT id, {', '.join(_FACTS)} FROM sessions WHERE {where}")
        wanted = None if sessions is None else set(sessions)
        entries = ((facts, _spent(db, id)) for id, *facts in rows if wanted is None or id in wanted)
        spent_rows = [(*facts, spent) for facts, spent in entries if spent is not None]
        if not spent_rows or not self.path:
            return
        placeholders = ", ".join("?" * (len(_FACTS) + 1))
        try:
            with closing(_opened(self.path)) as ledger, ledger:
                ledger.executemany(f"INSERT OR REPLACE INTO ledger VALUES ({placeholders})", spent_rows)
        except (sqlite3.Error, OSError):
            return

    def missing(self, db: sqlite3.Connection) -> Iterator[tuple[dict[str, Any], list[tuple[Any, ...]]]]:
        """The sessions that the index does not have: the columns of each, and its rows of `spent`.

        Raises `Unavailable` if the ledger cannot be read now.
        """
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
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(f"{self.path} could not be read: {error}") from None
        damaged = 0
        for *facts, data in entries:
            if tuple(facts[:3]) not in present:
                spent = _decoded(data)
                damaged += spent is None
                if spent is not None:
                    yield dict(zip(_FACTS, facts, strict=True)), spent
        if damaged:
            sessions = "1 deleted session" if damaged == 1 else f"{damaged} deleted sessions"
            problem = f"what {sessions} spent is not counted: {self.path} is damaged there; a backup of it may help"
            warnings.warn(problem, TurnlogWarning, stacklevel=2)


def add_gone(db: sqlite3.Connection, id: int, columns: dict[str, Any], spent: list[tuple[Any, ...]]) -> None:
    """Add a session that is gone but counted: it is not listed, and has no texts."""
    named = {"id": id, "is_ours": 0, "is_deleted": 1, **columns}
    db.execute(
        f"INSERT INTO sessions ({', '.join(named)}) VALUES ({', '.join('?' * len(named))})", list(named.values())
    )
    placeholders = ", ".join("?" * (len(_SPENT) + 1))
    db.executemany(
        f"INSERT INTO spent (session, {', '.join(_SPENT)}) VALUES ({placeholders})", [(id, *row) for row in spent]
    )


def _spent(db: sqlite3.Connection, session: int) -> bytes | None:
    rows = db.execute(f"SELECT {', '.join(_SPENT)} FROM spent WHERE session = ?", (session,)).fetchall()
    return zlib.compress(msgspec.msgpack.encode(rows)) if rows else None


def _decoded(data: bytes) -> list[tuple[Any, ...]] | None:
    """The rows of a session; None if they are damaged."""
    try:
        rows: list[tuple[Any, ...]] = _DECODER.decode(zlib.decompress(data))
    except (zlib.error, msgspec.MsgspecError, TypeError):
        return None
    return rows if all(len(row) == len(_SPENT) for row in rows) else None


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
