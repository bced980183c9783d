"""Sessions that are both here and in a database: another agent's, and what was imported from it there.

Lists and sums count them once, as they do where both are in one catalog: what the import has is its own, and where it
has everything, it stands for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import json

from turnlog.catalog.index.copies import ELSEWHERE, written_from
from turnlog.catalog.index.notes import note, noted
from turnlog.catalog.index.settle import inherit, said_in, settle, sum_up, tokens_of
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
_KEY = "imported as "


class _Pair(NamedTuple):
    """A session here, and the one there that was imported from it."""

    here: int
    there: int
    native: str
    stamp: str


def reconcile(database: Database, server: PostgresEngine, waiting: Callable[[], None]) -> None:
    """Bring what is known here into step with what is there."""
    _copies(database, server, waiting)
    there = {origin: (id, native, seq) for id, origin, native, seq in server.rows(_THERE)}
    wanted, gone = _look(SqliteEngine(database.connection), there)
    if not wanted and not gone:
        return
    ids = [pair.there for pair in wanted]
    entries, tokens = _by_session(server.rows(_ENTRIES, (ids,))), _by_session(server.rows(_TOKENS, (ids,)))
    with database.lock(waiting), database.writing() as db:
        here = SqliteEngine(db)
        if gone:
            loose = {token for id in gone for token in tokens_of(here, id)}
            here.run(_FREE, [(id,) for id in gone])
            here.run(here.drop_note, [(f"{_KEY}{id}",) for id in gone])
            settle(here, gone, loose)
            wanted, _ = _look(here, there)  # settling knows nothing of them
            wanted = [pair for pair in wanted if pair.there in entries or pair.there in tokens]
        for pair in wanted:
            is_whole = said_in(here, pair.here) <= entries.get(pair.there, set())
            here.run(_PAIR, [(pair.native, is_whole, pair.here)])
            inherit(here, [(True, pair.here, token) for token in tokens.get(pair.there, ())])
            note(here, f"{_KEY}{pair.here}", pair.stamp)
        sum_up(here, {pair.here for pair in wanted})


def _copies(database: Database, server: PostgresEngine, waiting: Callable[[], None]) -> None:
    """What copies here were written from may be there: then it counts, and is shown, there."""
    here = SqliteEngine(database.connection)
    copies = written_from(here)
    wanted = sorted({id for of in copies.values() for id in of})
    there = [list(row) for row in server.rows(_WRITTEN_FROM, (wanted,))] if wanted else []
    encoded = json.encode(there).decode() if there else None
    if encoded == noted(here, ELSEWHERE):
        return
    with database.lock(waiting), database.writing() as db:
        here = SqliteEngine(db)
        note(here, ELSEWHERE, encoded)
        settle(here, set(copies))


def _look(here: SqliteEngine, there: dict[str, tuple[int, str, int]]) -> tuple[list[_Pair], set[int]]:
    """Those of which something has changed, and those whose import is no longer there."""
    wanted: list[_Pair] = []
    gone: set[int] = set()
    noted = dict(here.rows(_NOTED, (f"{_KEY}%",)).fetchall())
    if not noted and not there:
        return wanted, gone
    for id, origin, copy, updated, size in here.rows(_HERE).fetchall():
        other = there.get(origin)
        stamp = noted.get(f"{_KEY}{id}")
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
