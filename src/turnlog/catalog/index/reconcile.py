"""Sessions that are both here and in a database: another agent's, and what was imported from it there.

Lists and sums count them once, as they do where both are in one catalog: what the import has is its own, and where it
has everything, it stands for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.index import settle
from turnlog.catalog.index.rollup import roll_up

if TYPE_CHECKING:
    import sqlite3

    from turnlog.catalog.index.database import Database
    from turnlog.store.postgres.tables import Tables

_HERE = "SELECT id, origin, copy_of, coalesce(updated, 0), size FROM sessions WHERE origin <> '' AND NOT is_ours"
_THERE = "SELECT id, origin, native, seq FROM sessions WHERE origin <> '' AND NOT is_deleted ORDER BY id DESC"
_KEY = "imported as "


class _Pair(NamedTuple):
    """A session here, and the one there that was imported from it."""

    here: int
    there: int
    native: str
    stamp: str


def reconcile(database: Database, tables: Tables, waiting: Callable[[], None]) -> None:
    """Bring what is known here into step with what is there."""
    db = database.connection
    there = {origin: (id, native, seq) for id, origin, native, seq in tables.execute(_THERE)}
    wanted, gone = _look(db, there)
    if not wanted and not gone:
        return
    entries = _by_session(tables, "entry FROM docs", (pair.there for pair in wanted))
    tokens = _by_session(tables, "token FROM spent", (pair.there for pair in wanted))
    with database.lock(waiting), database.writing() as db:
        if gone:
            loose = {row[0] for id in gone for row in db.execute("SELECT token FROM spent WHERE session = ?", (id,))}
            db.executemany("UPDATE spent SET is_inherited = 0 WHERE session = ?", [(id,) for id in gone])
            db.executemany("DELETE FROM meta WHERE key = ?", [(f"{_KEY}{id}",) for id in gone])
            settle.settle(db, gone, loose)
            wanted, _ = _look(db, there)  # settling knows nothing of them
            wanted = [pair for pair in wanted if pair.there in entries or pair.there in tokens]
        for pair in wanted:
            said = {row[0] for row in db.execute("SELECT entry FROM docs WHERE session = ?", (pair.here,))}
            is_whole = said <= entries.get(pair.there, set())
            facts = (pair.native, is_whole, pair.here)
            db.execute("UPDATE sessions SET copy_of = ?, is_copied = ? WHERE id = ?", facts)
            paid = [(pair.here, token) for token in tokens.get(pair.there, ())]
            db.executemany("UPDATE spent SET is_inherited = 1 WHERE session = ? AND token = ?", paid)
            db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (f"{_KEY}{pair.here}", pair.stamp))
        changed = {pair.here for pair in wanted}
        settle.sum_up(db, changed, is_all=False)
        roll_up(db, changed)


def _look(db: sqlite3.Connection, there: dict[str, tuple[int, str, int]]) -> tuple[list[_Pair], set[int]]:
    """Those of which something has changed, and those whose import is no longer there."""
    wanted: list[_Pair] = []
    gone: set[int] = set()
    known = dict(db.execute("SELECT key, value FROM meta WHERE key LIKE ?", (f"{_KEY}%",)).fetchall())
    if not known and not there:
        return wanted, gone
    for here, origin, copy, updated, size in db.execute(_HERE).fetchall():
        other = there.get(origin)
        stamp = known.get(f"{_KEY}{here}")
        if other is None:
            if stamp is not None:
                gone.add(here)
            continue
        id, native, seq = other
        now = f"{id} {seq} {updated} {size}"
        if stamp != now or copy != native:
            wanted.append(_Pair(here, id, native, now))
    return wanted, gone


def _by_session(tables: Tables, what: str, sessions: Iterable[int]) -> dict[int, set[object]]:
    ids = sorted(set(sessions))
    found: dict[int, set[object]] = {}
    for begin in range(0, len(ids), 500):
        some = ids[begin : begin + 500]
        sql = f"SELECT session, {what} WHERE session IN ({', '.join('?' * len(some))})"
        for session, value in tables.execute(sql, some):
            found.setdefault(session, set()).add(value)
    return found
