"""Reads our own sessions in a database into the index there, for queries from any machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from turnlog.catalog.index.batch import Batch
from turnlog.catalog.index.columns import clean
from turnlog.catalog.index.notes import DIRTY, PRICED, has_note, set_note
from turnlog.catalog.index.postgres.changes import Outdated, SessionChanges
from turnlog.catalog.index.postgres.engine import PostgresEngine
from turnlog.catalog.index.postgres.writer import PostgresWriter
from turnlog.catalog.index.settle import settle, shared_by, tokens_of
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.read import own
from turnlog.catalog.read.job import reason_of
from turnlog.catalog.values import Synced
from turnlog.errors import Unavailable
from turnlog.log.ids import handle_of

if TYPE_CHECKING:
    from turnlog.catalog.index.rows import SessionRow
    from turnlog.store import Store
    from turnlog.store.capability import TableConnection


def catch_up(
    connection: TableConnection,
    store: Store,
    progress: Callable[[str, int, int], None] | None,
    waiting: Callable[[], None],
) -> Synced:
    """Read what was appended since the last time. Appends and queries go on meanwhile."""
    changes, engine = SessionChanges(connection), PostgresEngine(connection)
    since = changes.since()
    if since.passed is not None and not changes.changed(since) and not has_note(engine, DIRTY):
        return Synced(since.sessions, 0, 0, 0, is_rebuilt=False)
    with connection.lock(waiting):
        since = changes.since()
        changed, gone = changes.changed(since), changes.gone() if since.passed is None else []
        was_dirty = has_note(engine, DIRTY)
        writer = PostgresWriter(connection)
        batch = Batch(engine, writer)
        released: set[int] = set()
        for session in gone + changes.left_over([one.num for one in changed if one.is_new]):
            released |= tokens_of(engine, session)
            changes.forget(session)
        finished, total = 0, sum(one.size for one in changed)
        for one in changed:
            if progress is not None:
                progress("indexing", finished, total)
            released |= _index(changes, store, batch, writer, one)
            finished += one.size
        batch.flush()
        with connection.writing():
            changed_ids = {one.num for one in changed} | _priced(batch)
            if changed_ids or gone or was_dirty:
                settle(engine, None if was_dirty else changed_ids, released)
        changes.remember(since)
        if progress is not None and changed:
            progress("indexing", total, total)
    return Synced(changes.since().sessions, len(changed), finished, len(gone), is_rebuilt=False)


def _priced(batch: Batch) -> set[int]:
    """Price unpriced requests again, unless that was done with these prices. Returns the sessions that changed."""
    key = f"{PRICED}{batch.prices.stamp}"
    if has_note(batch.db, key):
        return set()
    set_note(batch.db, key)
    return batch.prices.recompute(batch.db, only_unpriced=True)  # prices of another machine are as good as ours


def _index(changes: SessionChanges, store: Store, batch: Batch, writer: PostgresWriter, one: Outdated) -> set[int]:
    """Read what is new in one session. Returns the requests that it shared with others."""
    stamp = Stamp(one.size, one.last_ms * 1_000_000, one.num)
    before = changes.before(one.num)
    shared = set[int]() if before is None else shared_by(batch.db, [one.num])
    batch.mark_dirty()
    if before is None:
        changes.begin(batch, one.num, handle_of(one.id), clean(one.id))
    row: SessionRow
    try:
        row = own.read_session(batch, store, one.id, one.num, stamp, before)
    except Unavailable:
        raise
    except Exception as error:
        # Whatever the error is, the session is listed with the reason, and the others are read.
        if writer.has_failed:
            raise
        row = {"problem": reason_of(error), "size": one.size, "updated": one.last_ms}
    row["seq"], row["is_deleted"] = one.seq, one.is_deleted
    batch.put(one.num, row)
    return shared
