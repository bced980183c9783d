"""Reads our own sessions in a database into the index that lies there, for whoever asks next on any machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from turnlog.catalog.index.batch import Batch
from turnlog.catalog.index.notes import DIRTY, note, noted
from turnlog.catalog.index.postgres.changes import Outdated, SessionChanges
from turnlog.catalog.index.postgres.engine import PostgresEngine
from turnlog.catalog.index.postgres.writer import PostgresWriter
from turnlog.catalog.index.settle import settle, shared_by, tokens_of
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.index.texts import clean
from turnlog.catalog.read import own
from turnlog.catalog.values import Synced
from turnlog.errors import TurnlogError, Unavailable
from turnlog.log.ids import handle_of

if TYPE_CHECKING:
    from turnlog.store import Store
    from turnlog.store.capability import TableConnection


def catch_up(
    connection: TableConnection,
    store: Store,
    progress: Callable[[str, int, int], None] | None,
    waiting: Callable[[], None],
) -> Synced:
    """Read what was appended since somebody last did. Appending goes on meanwhile, and so does asking."""
    changes, engine = SessionChanges(connection), PostgresEngine(connection)
    since = changes.since()
    if since.passed is not None and not changes.changed(since) and noted(engine, DIRTY) is None:
        return Synced(since.sessions, 0, 0, 0, is_rebuilt=False)
    with connection.lock(waiting):
        since = changes.since()
        changed, gone = changes.changed(since), changes.gone() if since.passed is None else []
        was_dirty = noted(engine, DIRTY) is not None
        batch = Batch(engine, PostgresWriter(connection))
        loose: set[int] = set()
        for session in gone + changes.left_over([one.num for one in changed if one.is_new]):
            loose |= tokens_of(engine, session)
            changes.forget(session)
        finished, total = 0, sum(one.size for one in changed)
        for one in changed:
            if progress is not None:
                progress("indexing", finished, total)
            loose |= _take(changes, store, batch, one)
            finished += one.size
        batch.flush()
        with connection.writing():
            touched = {one.num for one in changed} | _priced(batch)
            if touched or gone or was_dirty:
                settle(engine, None if was_dirty else touched, loose)
        changes.remember(since)
        if progress is not None and changed:
            progress("indexing", total, total)
    return Synced(changes.since().sessions, len(changed), finished, len(gone), is_rebuilt=False)


def _priced(batch: Batch) -> set[int]:
    """Try what had no price once more, if nobody did with these prices; gives the sessions that have one now."""
    key = f"prices {batch.prices.stamp}"
    if noted(batch.db, key) is not None:
        return set()
    note(batch.db, key, 1)
    return batch.prices.again(batch.db, only_unpriced=True)  # of two machines, neither knows better


def _take(changes: SessionChanges, store: Store, batch: Batch, one: Outdated) -> set[int]:
    """Read what one session has that is new; gives what it shared with others."""
    stamp = Stamp(one.size, one.last_ms * 1_000_000, one.num)
    before = changes.before(one.num)
    shared = set[int]() if before is None else shared_by(batch.db, [one.num])
    batch.mark_dirty()
    if before is None:
        changes.begin(batch, one.num, handle_of(one.id), clean(one.id))
    try:
        row = own.take(batch, store, one.id, one.num, stamp, before)
    except Unavailable:
        raise
    except (TurnlogError, ValueError, RecursionError, LookupError) as error:
        row = {"problem": clean(f"it cannot be read: {error}"), "size": one.size, "updated": one.last_ms}
    batch.put(one.num, row | {"seq": one.seq, "is_deleted": one.is_deleted})
    return shared
