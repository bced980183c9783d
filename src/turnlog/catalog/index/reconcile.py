"""Sessions that are both here and in a database: another agent's, and its import there.

Lists and sums count them once, as if both were in one catalog: what the import has counts there, and if it
has everything, only the import is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import json

from turnlog.catalog.index.copies import written_from
from turnlog.catalog.index.notes import ELSEWHERE, IMPORTED, drop_note, get_note, set_note
from turnlog.catalog.index.settle import entry_ids, inherit, settle, sum_up, tokens_of
from turnlog.catalog.index.sqlite.damage import reporting_damage
from turnlog.catalog.index.sqlite.engine import SqliteEngine

if TYPE_CHECKING:
    from turnlog.catalog.index.postgres.engine import PostgresEngine
    from turnlog.catalog.index.sqlite.database import Database

_HERE = "SELECT id, origin, copy_of, coalesce(updated, 0), size FROM sessions WHERE origin <> '' AND NOT is_ours"
_NOTED = "SELECT key, value FROM meta WHERE key LIKE ?"
_PAIR = "UPDATE sessions SET copy_of = ?, is_copied = ? WHERE id = ?"
_FREE = "UPDATE spent SET is_inherited = 0 WHERE session = ?"
_THERE = """
select id, origin, native, seq from turnlog.own_sessions where origin <> '' and not is_deleted order by id desc
"""
_ENTRIES = "select session, entry from turnlog.own_docs where session = any(%s)"
_TOKENS = "select session, token from turnlog.own_spent where session = any(%s)"
_WRITTEN_FROM = "select native, is_deleted from turnlog.own_sessions where native = any(%s) order by native"


class _Pair(NamedTuple):
    """A session here, and its import in the database."""

    here: int
    there: int
    native: str
    stamp: str


def reconcile(database: Database, server: PostgresEngine, waiting: Callable[[], Callable[[], None]]) -> None:
    """Update the local index to what is in the database."""
    _copies(database, server, waiting)
    there = {origin: (id, native, seq) for id, origin, native, seq in server.rows(_THERE)}
    with reporting_damage():
        wanted, gone = _look(SqliteEngine(database.connection), there)
    if not wanted and not gone:
        return
    ids = [pair.there for pair in wanted]
    entries, tokens = _by_session(server.rows(_ENTRIES, (ids,))), _by_session(server.rows(_TOKENS, (ids,)))
    with database.lock(waiting()), database.writing() as db:
        here = SqliteEngine(db)
        if gone:
            released = {token for id in gone for token in tokens_of(here, id)}
            here.run(_FREE, [(id,) for id in gone])
            for id in gone:
                drop_note(here, f"{IMPORTED}{id}")
            settle(here, gone, released)
            wanted, _ = _look(here, there)  # settling resets them
            wanted = [pair for pair in wanted if pair.there in entries or pair.there in tokens]
        for pair in wanted:
            is_whole = entry_ids(here, pair.here) <= entries.get(pair.there, set())
            here.run(_PAIR, [(pair.native, is_whole, pair.here)])
            inherit(here, [(True, pair.here, token) for token in tokens.get(pair.there, ())])
            set_note(here, f"{IMPORTED}{pair.here}", pair.stamp)
        sum_up(here, {pair.here for pair in wanted})


def _copies(database: Database, server: PostgresEngine, waiting: Callable[[], Callable[[], None]]) -> None:
    """Note the originals of local copies that are in the database: they are counted and shown there."""
    here = SqliteEngine(database.connection)
    with reporting_damage():
        copies = written_from(here)
    wanted = sorted({id for of in copies.values() for id in of})
    there = [list(row) for row in server.rows(_WRITTEN_FROM, (wanted,))] if wanted else []
    encoded = json.encode(there).decode() if there else None
    if encoded == get_note(here, ELSEWHERE):
        return
    with database.lock(waiting()), database.writing() as db:
        here = SqliteEngine(db)
        set_note(here, ELSEWHERE, encoded)
        settle(here, set(copies))


def _look(here: SqliteEngine, there: dict[str, tuple[int, str, int]]) -> tuple[list[_Pair], set[int]]:
    """The pairs that have changed, and the sessions whose import is gone."""
    wanted: list[_Pair] = []
    gone: set[int] = set()
    stamps = dict(here.rows(_NOTED, (f"{IMPORTED}%",)).fetchall())
    if not stamps and not there:
        return wanted, gone
    for id, origin, copy, updated, size in here.rows(_HERE).fetchall():
        other = there.get(origin)
        stamp = stamps.get(f"{IMPORTED}{id}")
        if other is None:
            if stamp is not None:
                gone.add(id)
            continue
        num, native, seq = other
        now = f"{num} {seq} {updated} {size}"
        if stamp != now or copy != native:
            wanted.append(_Pair(id, num, native, now))
    return wanted, gone


def _by_session(rows: Iterable[tuple[Any, ...]]) -> dict[int, set[Any]]:
    by_session: dict[int, set[Any]] = {}
    for session, value in rows:
        by_session.setdefault(session, set()).add(value)
    return by_session
