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
from turnlog.catalog.index.origin import is_hooked, origins_of
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


class _Import(NamedTuple):
    """A session in the database that was imported from another agent's."""

    id: int
    native: str
    seq: int
    is_hooked: bool
    """Whether hooks report its turns, so that it counts as complete."""


class _Pair(NamedTuple):
    """A session here, and its import in the database."""

    here: int
    there: _Import
    stamp: str


def reconcile(database: Database, server: PostgresEngine, waiting: Callable[[], Callable[[], None]]) -> None:
    """Update the local index to what is in the database."""
    _copies(database, server, waiting)
    imports = _imports(server)
    with reporting_damage():
        pairs, gone = _changed_pairs(SqliteEngine(database.connection), imports)
    if not pairs and not gone:
        return
    ids = sorted({pair.there.id for pair in pairs})
    entries, tokens = _by_session(server.rows(_ENTRIES, (ids,))), _by_session(server.rows(_TOKENS, (ids,)))
    with database.lock(waiting()), database.writing() as db:
        here = SqliteEngine(db)
        pairs, gone = _changed_pairs(here, imports)  # the index may have changed, or been replaced, meanwhile
        if gone:
            released = {token for id in gone for token in tokens_of(here, id)}
            here.run(_FREE, [(id,) for id in gone])
            for id in gone:
                drop_note(here, f"{IMPORTED}{id}")
            settle(here, gone, released)
            pairs, _ = _changed_pairs(here, imports)  # settling resets them
        pairs = [pair for pair in pairs if pair.there.id in ids]  # others wait for the next time
        for pair in pairs:
            there = pair.there
            is_whole = there.is_hooked or entry_ids(here, pair.here) <= entries.get(there.id, set())
            here.run(_PAIR, [(there.native, is_whole, pair.here)])
            inherit(here, [(True, pair.here, token) for token in tokens.get(there.id, ())])
            set_note(here, f"{IMPORTED}{pair.here}", pair.stamp)
        sum_up(here, {pair.here for pair in pairs})


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
        settle(here, set(written_from(here)))


def _imports(server: PostgresEngine) -> dict[str, _Import]:
    """The imports in the database by the ids that they have in their agents; of several, the first one."""
    return {
        origin: _Import(id, native, seq, is_hooked(origins))
        for id, origins, native, seq in server.rows(_THERE)
        for origin in origins_of(origins)
    }


def _changed_pairs(here: SqliteEngine, imports: dict[str, _Import]) -> tuple[list[_Pair], set[int]]:
    """The pairs that have changed, and the sessions whose import is gone."""
    pairs: list[_Pair] = []
    gone: set[int] = set()
    stamps = dict(here.rows(_NOTED, (f"{IMPORTED}%",)).fetchall())
    if not stamps and not imports:
        return pairs, gone
    for id, origin, copy, updated, size in here.rows(_HERE).fetchall():
        there = imports.get(origin)
        stamp = stamps.get(f"{IMPORTED}{id}")
        if there is None:
            if stamp is not None:
                gone.add(id)
            continue
        now = f"{there.id} {there.seq} {updated} {size}"
        if stamp != now or copy != there.native:
            pairs.append(_Pair(id, there, now))
    return pairs, gone


def _by_session(rows: Iterable[tuple[Any, ...]]) -> dict[int, set[Any]]:
    by_session: dict[int, set[Any]] = {}
    for session, value in rows:
        by_session.setdefault(session, set()).add(value)
    return by_session
