"""Removing a session for good, and what was only kept aside for it."""

from __future__ import annotations

from typing import LiteralString

from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection
from turnlog.store.refusal import refuse_longer

# Always from a fork to what it builds on, so that two of them never wait for each other.
_ROW: LiteralString = (
    "select num, root, place, fork_of, coalesce(first_key, key), last_seq from turnlog.session where tenant = %s"
)
_NAMED: LiteralString = _ROW + " and key = %b and place = any(%s) for update"
_FIRST: LiteralString = _ROW + " and coalesce(first_key, key) = %b for update"
_DROP = "select turnlog.drop_entries(%s, %s, %s)"
_NEEDED = "select max(fork_seq) from turnlog.session where tenant = %s and fork_of = %b"


def purge(connection: Connection, tenant: int, session_id: str, places: list[str], after: int | None) -> int:
    """Inside a transaction. How many such sessions there were; where there were two, nothing is done."""
    rows = connection.execute(_NAMED, (tenant, key_of(session_id), places), binary=True).fetchall()
    if len(rows) != 1:
        return len(rows)
    num, root, _, above, first, last = rows[0]
    refuse_longer(session_id, last, after)
    connection.execute("select turnlog.own_forget(%s)", (num,))
    # Others may count from now on what it counted.
    connection.execute("insert into turnlog.own_meta (key, value) values ('unsettled', 1) on conflict do nothing")
    needed = _needed(connection, tenant, first)
    if needed:
        connection.execute(_DROP, (root, num, needed))
        connection.execute(
            "update turnlog.session set place = 'base', last_seq = least(last_seq, %s), "
            "wide_seq = case when wide_seq <= %s then wide_seq end, bytes = ("
            "select coalesce(sum(octet_length(line) + 1), 0) from turnlog.entry "
            "where tenant = %s and root = %s and session = %s) where tenant = %s and num = %s",
            (needed, needed, tenant, root, num, tenant, num),
        )
        return 1
    while True:
        # What it builds on is locked before it goes: of two last forks, the second one sees that it is the last.
        base = connection.execute(_FIRST, (tenant, above), binary=True).fetchone() if above is not None else None
        connection.execute(_DROP, (root, num, 0))
        connection.execute("select turnlog.drop_session(%s)", (num,))
        if above is None or base is None or base[2] != "base" or _needed(connection, tenant, above):
            return 1
        num, root, _, above, _, _ = base


def _needed(connection: Connection, tenant: int, first: bytes) -> int:
    """Up to where forks need the log with that first entry."""
    row = connection.execute(_NEEDED, (tenant, first)).fetchone()
    return (row[0] or 0) if row is not None else 0
