"""The rows of one log. An append is one statement, which changes nothing unless the log ends where expected."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from msgspec import Struct

from turnlog.log.draft import Draft, stamp_drafts
from turnlog.log.entry import AnyEntry, is_fence, is_wide
from turnlog.store.postgres.connection import Statement, array
from turnlog.store.postgres.lease import Lease
from turnlog.store.postgres.leasename import watches_of
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection, Pool
from turnlog.store.postgres.watch import Watch

_T = TypeVar("_T")
NO_FENCE = (1 << 63) - 1

# The parameters of an append:
#   $1 the session's number   $2-$6 its new last_seq, last_ms, last_fence, wide_seq, and the bytes that are added
#   $7 the last_seq and $8 the greatest last_fence that it may have now   $9 the tenant
#   then the prefix of its watchers' names (not if it is unwatched); seq, key and line, or arrays of them;
#   and the name of the lease on the blobs (only if there is one)
_MOVE = """
with {held}moved as (
    update turnlog.session set last_seq = $2, last_ms = $3, recent = $3 / 60000, last_fence = greatest(last_fence, $4),
        wide_seq = coalesce($5, wide_seq), bytes = bytes + $6
    where tenant = $9 and num = $1 and place = 'live' and last_seq = $7 and last_fence <= $8{if_held}
    returning num, root, tenant
)
insert into turnlog.entry (root, session, tenant, seq, key, line)
"""
# Lines that refer to blobs are only inserted while our lease on the blobs still has its row.
_HELD = "held as (select from turnlog.lease where tenant = $9 and name = ${} for key share), "
_IF_HELD = " and exists (select from held)"
_UNWATCHED = """
returning not exists (
    select from turnlog.lease
    where tenant = $9 and name > $10 || ' ' and name < $10 || '!' and until > clock_timestamp())
"""
_RECHECK_S = 0.05
"""How long a writer relies on the answer that there are no watchers."""
_LOG_TYPES = ("int8",) * 8 + ("int4",)
_LINE_TYPES, _LINES_TYPES = ("int8", "bytea", "bytea"), ("int8[]", "bytea[]", "bytea[]")
_PLAIN = _MOVE.format(held="", if_held="")
_KEEPING = _MOVE.format(held=_HELD.format(14), if_held=_IF_HELD)
_INSERT_ONE = "select root, num, tenant, $11, $12, $13 from moved" + _UNWATCHED
_INSERT_MANY = "select root, num, tenant, new.* from moved, unnest($11, $12, $13) as new" + _UNWATCHED
_APPEND_ONE = Statement.of(_PLAIN + _INSERT_ONE, (*_LOG_TYPES, "text", *_LINE_TYPES))
_APPEND_MANY = Statement.of(_PLAIN + _INSERT_MANY, (*_LOG_TYPES, "text", *_LINES_TYPES))
_APPEND_ONE_KEEPING = Statement.of(_KEEPING + _INSERT_ONE, (*_LOG_TYPES, "text", *_LINE_TYPES, "text"))
_APPEND_MANY_KEEPING = Statement.of(_KEEPING + _INSERT_MANY, (*_LOG_TYPES, "text", *_LINES_TYPES, "text"))
_APPEND_ONE_UNWATCHED = Statement.of(
    _PLAIN + "select root, num, tenant, $10, $11, $12 from moved returning true", (*_LOG_TYPES, *_LINE_TYPES)
)
_APPEND_MANY_UNWATCHED = Statement.of(
    _PLAIN + "select root, num, tenant, new.* from moved, unnest($10, $11, $12) as new returning true",
    (*_LOG_TYPES, *_LINES_TYPES),
)
_int8 = struct.Struct(">q").pack
_int4 = struct.Struct(">i").pack
_LOCK = """
select place, last_seq, last_ms, last_fence from turnlog.session where tenant = %s and num = %s for no key update
"""
PRESENT = """
select key, line from turnlog.entry where tenant = %s and root = %s and session = %s and key = any(%b::bytea[])
"""


class Stamped(Struct, frozen=True):
    """Stamped entries: what a statement needs to insert them."""

    entries: list[AnyEntry]
    lines: list[bytes]
    seqs: list[int]
    keys: list[bytes]
    last_at: int
    last_fence: int
    wide_seq: int | None
    size: int


def stamp(drafts: list[Draft], *, floor: int, at: int, now: int, head: int) -> Stamped:
    """Give drafts their numbers and times, and encode them as lines."""
    with_stamps = stamp_drafts(drafts, floor=floor, at=at, now=now, head=head)
    sealed = [one.draft.sealed(one.stamps) for one in with_stamps]
    keys, last_at = [key_of(draft.id) for draft in drafts], with_stamps[-1].at if with_stamps else at
    return stamped([entry for _, entry in sealed], [line[:-1] for line, _ in sealed], keys, last_at)


def stamped(entries: list[AnyEntry], lines: list[bytes], keys: list[bytes], last_at: int) -> Stamped:
    """Return entries with their bare lines and keys, ready to be inserted."""
    seqs, size = [entry.seq for entry in entries], sum(len(line) + 1 for line in lines)
    fence = max((entry.seq for entry in entries if is_fence(entry)), default=0)
    wide = max((entry.seq for entry in entries if is_wide(entry)), default=None)
    return Stamped(entries, lines, seqs, keys, last_at, fence, wide, size)


class LogEnd(Struct, frozen=True):
    """The end of a log, as far as it is known."""

    seq: int
    at: int


class LockedLog(NamedTuple):
    """Where a locked log is, and its end."""

    place: str
    last_seq: int
    last_ms: int
    last_fence: int


class LogRow(Struct, frozen=True):
    """A row of the table of sessions."""

    id: str
    num: int
    root: int
    """The number of the session at the root of its forks."""
    tail: LogEnd | None = None
    """The end of the log; None if it was not read."""


class LogRows:
    """The rows of one log. Not thread-safe."""

    def __init__(self, pool: Pool, watch: Watch, row: LogRow) -> None:
        self.id = row.id
        self.num = num = row.num
        self.tenant = watch.leases.tenant
        self.key_columns = (self.tenant, row.root, num)
        """The key columns that all rows of the log share."""
        self.tail = row.tail
        """The end of the log; None if it is unknown."""
        self._pool = pool
        self._watch = watch
        self._is_watched = False
        self._unwatched_until = 0.0
        self._number, self._owner, self._watched = _int8(num), _int4(self.tenant), watches_of(num).encode()

    def run(self, job: Callable[[Connection, bool], _T]) -> _T:
        """Run a job that appends, with retries, and notify watchers."""
        self._is_watched = False
        result = self._pool.run(f"appending to session {self.id}", job)
        if self._is_watched:
            self._watch.notify_append(self.num)
        return result

    def lock(self, connection: Connection) -> LockedLog | None:
        """Lock the log for the transaction. Returns None if it is gone."""
        row = connection.execute(_LOCK, (self.tenant, self.num)).fetchone()
        return None if row is None else LockedLog(*row)

    def present(self, connection: Connection, keys: list[bytes]) -> dict[bytes, bytes]:
        """Return the existing lines with these keys."""
        rows = connection.execute(PRESENT, (*self.key_columns, keys), binary=True).fetchall()
        return {bytes(key): bytes(line) for key, line in rows}

    def write(self, connection: Connection, new: Stamped, tail: LogEnd, limit: int, lease: Lease | None) -> bool:
        """Insert the lines in one statement. Returns whether the log ended as expected, so that they were inserted."""
        values: list[bytes | None] = [
            self._number, _int8(new.seqs[-1]), _int8(new.last_at), _int8(new.last_fence),
            None if new.wide_seq is None else _int8(new.wide_seq), _int8(new.size), _int8(tail.seq), _int8(limit),
            self._owner,
        ]  # fmt: skip
        now = time.monotonic()
        is_one = len(new.lines) == 1
        if is_one:
            columns = (_int8(new.seqs[0]), new.keys[0], new.lines[0])
        else:
            columns = (array("int8", list(map(_int8, new.seqs))), array("bytea", new.keys), array("bytea", new.lines))
        if lease is not None:
            statement = _APPEND_ONE_KEEPING if is_one else _APPEND_MANY_KEEPING
            result = connection.call(statement, [*values, self._watched, *columns, lease.name.encode()])
        elif now < self._unwatched_until:
            result = connection.call(_APPEND_ONE_UNWATCHED if is_one else _APPEND_MANY_UNWATCHED, [*values, *columns])
        else:
            result = connection.call(_APPEND_ONE if is_one else _APPEND_MANY, [*values, self._watched, *columns])
        if result.ntuples != len(new.lines):
            return False
        self.tail = LogEnd(new.seqs[-1], new.last_at)
        self._is_watched = result.get_value(0, 0) == b"\0"
        if not self._is_watched and now >= self._unwatched_until:
            self._unwatched_until = now + _RECHECK_S
        return True
