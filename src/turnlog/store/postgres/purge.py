"""Purging a session, and the logs that are kept aside only for it."""

from __future__ import annotations

from typing import LiteralString, NamedTuple

from turnlog.store.postgres.log import entry_in
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection
from turnlog.store.refusal import refuse_other_end


class _PurgedRow(NamedTuple):
    """The columns of `_ROW`."""

    num: int
    root: int
    place: str
    fork_of: bytes | None
    first: bytes
    last_seq: int


# Rows are always locked from a fork to its parent, so that two purges cannot deadlock.
_ROW: LiteralString = (
    "select num, root, place, fork_of, coalesce(first_key, key), last_seq from turnlog.session where tenant = %s"
)
_NAMED: LiteralString = _ROW + " and key = %b and place = any(%s) for update"
_FIRST: LiteralString = _ROW + " and coalesce(first_key, key) = %b for update"
_DROP = "select turnlog.drop_entries(%s, %s, %s)"
_LINE = """
select line from turnlog.entry where tenant = %s and root = %s and session = %s and seq <= %s order by seq desc limit 1
"""
_NEEDED = "select max(fork_seq) from turnlog.session where tenant = %s and fork_of = %b"


def purge(connection: Connection, tenant: int, session_id: str, places: list[str], after: int | None) -> int:
    """Purge a session, inside a transaction. Returns how many sessions matched; if two did, nothing is removed."""
    rows = connection.execute(_NAMED, (tenant, key_of(session_id), places), binary=True).fetchall()
    if len(rows) != 1:
        return len(rows)
    log = _PurgedRow(*rows[0])
    refuse_other_end(session_id, log.last_seq, after)
    connection.execute("select turnlog.own_forget(%s)", (log.num,))
    # What counted for this session may now count for another one.
    connection.execute("insert into turnlog.own_meta (key, value) values ('unsettled', 1) on conflict do nothing")
    needed = _needed(connection, tenant, log.first)
    if needed:
        needed = _end_of_batch(connection, tenant, log, needed)
        connection.execute(_DROP, (log.root, log.num, needed))
        connection.execute(
            "update turnlog.session set place = 'base', last_seq = least(last_seq, %s), "
            "wide_seq = case when wide_seq <= %s then wide_seq end, bytes = ("
            "select coalesce(sum(octet_length(line) + 1), 0) from turnlog.entry "
            "where tenant = %s and root = %s and session = %s) where tenant = %s and num = %s",
            (needed, needed, tenant, log.root, log.num, tenant, log.num),
        )
        return 1
    while True:
        # The parent is locked first: of the last two forks, the one that is purged second then removes the parent.
        parent = None if log.fork_of is None else _locked(connection, tenant, log.fork_of)
        connection.execute(_DROP, (log.root, log.num, 0))
        connection.execute("select turnlog.drop_session(%s)", (log.num,))
        if parent is None or parent.place != "base" or _needed(connection, tenant, parent.first):
            return 1
        log = parent


def _end_of_batch(connection: Connection, tenant: int, log: _PurgedRow, seq: int) -> int:
    """Return the last entry of the batch that entry `seq` is in: a batch counts only if it is whole."""
    row = connection.execute(_LINE, (tenant, log.root, log.num, seq), binary=True).fetchone()
    entry = None if row is None else entry_in(bytes(row[0]))
    return seq if entry is None else max(seq, entry.seq + entry.more)


def _locked(connection: Connection, tenant: int, first: bytes) -> _PurgedRow | None:
    row = connection.execute(_FIRST, (tenant, first), binary=True).fetchone()
    return None if row is None else _PurgedRow(*row)


def _needed(connection: Connection, tenant: int, first: bytes) -> int:
    """Return the last entry that forks need of the log with that first entry."""
    row = connection.execute(_NEEDED, (tenant, first)).fetchone()
    return (row[0] or 0) if row is not None else 0
