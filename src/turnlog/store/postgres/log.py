"""One session's log as rows: an append is one statement, which finds the log as we know it or changes nothing."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator

import psycopg
from msgspec import Struct

from turnlog.errors import AlreadyExists, Conflict, Corrupt, NotFound
from turnlog.log.codec import Damage, Flawed, Unreadable, decode
from turnlog.log.draft import Draft, number
from turnlog.log.entry import AnyEntry, Entry, is_fence
from turnlog.log.written import WrittenLine, bare
from turnlog.store import Clock
from turnlog.store.postgres.connection import Statement, array
from turnlog.store.postgres.lease import Lease
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection, Pool, renew_after_fork
from turnlog.store.postgres.watch import Watch, watch_name

NO_FENCE = (1 << 63) - 1
_FIRST_PAGE, _PAGE = 64, 1024
_PAGE_BYTES = 1 << 20
_LOOK_S = 1.0
"""Whoever waits for news looks for himself as often as this."""

_MOVE = """
with {held}moved as (
    update turnlog.session set last_seq = $2, last_ms = $3, recent = $3 / 60000, last_fence = greatest(last_fence, $4),
        wide_seq = coalesce($5, wide_seq), bytes = bytes + $6
    where tenant = $9 and num = $1 and place = 'live' and last_seq = $7 and last_fence <= $8{if_held}
    returning num, root, tenant
)
insert into turnlog.entry (root, session, tenant, seq, key, line)
"""
# What refers to blobs is written by who keeps them, and by nobody who only believes that.
_HELD = "held as (select from turnlog.lease where tenant = $9 and name = ${} for key share), "
_IF_HELD = " and exists (select from held)"
_UNWATCHED = """
returning not exists (
    select from turnlog.lease
    where tenant = $9 and name > $10 || ' ' and name < $10 || '!' and until > clock_timestamp())
"""
_ASK_AGAIN_S = 0.05
"""Who was told that nobody watches believes it for so long."""
_END = ("int8",) * 8 + ("int4",)
_ONE, _MANY = ("int8", "bytea", "bytea"), ("int8[]", "bytea[]", "bytea[]")
_PLAIN = _MOVE.format(held="", if_held="")
_KEEPING = _MOVE.format(held=_HELD.format(14), if_held=_IF_HELD)
_INSERT_ONE = "select root, num, tenant, $11, $12, $13 from moved" + _UNWATCHED
_INSERT_MANY = "select root, num, tenant, new.* from moved, unnest($11, $12, $13) as new" + _UNWATCHED
_APPEND_ONE = Statement(_PLAIN + _INSERT_ONE, (*_END, "text", *_ONE))
_APPEND_MANY = Statement(_PLAIN + _INSERT_MANY, (*_END, "text", *_MANY))
_APPEND_ONE_KEEPING = Statement(_KEEPING + _INSERT_ONE, (*_END, "text", *_ONE, "text"))
_APPEND_MANY_KEEPING = Statement(_KEEPING + _INSERT_MANY, (*_END, "text", *_MANY, "text"))
_APPEND_ONE_UNWATCHED = Statement(
    _PLAIN + "select root, num, tenant, $10, $11, $12 from moved returning true", (*_END, *_ONE)
)
_APPEND_MANY_UNWATCHED = Statement(
    _PLAIN + "select root, num, tenant, new.* from moved, unnest($10, $11, $12) as new returning true", (*_END, *_MANY)
)
_int8 = struct.Struct(">q").pack
_int4 = struct.Struct(">i").pack
LOCK = """
select place, last_seq, last_ms, last_fence from turnlog.session where tenant = %s and num = %s for no key update
"""
PRESENT = """
select key, line from turnlog.entry where tenant = %s and root = %s and session = %s and key = any(%b::bytea[])
"""
# How long a line is, is known without reading it: a page is at most a mebibyte and one line.
_READ = """
select seq, line from (
    select seq, line, sum(octet_length(line)) over (order by seq {order}) - octet_length(line) as ahead from (
        select seq, line from turnlog.entry
        where tenant = %s and root = %s and session = %s and seq > %s and seq < %s order by seq {order} limit %s
    ) as near
) as page where ahead < %s order by seq {order}
"""
_READ_FORWARDS = _READ.format(order="asc")
_READ_BACKWARDS = _READ.format(order="desc")


class Stamped(Struct, frozen=True):
    """Drafts with their place: what a statement needs to bring them into the table."""

    entries: list[AnyEntry]
    lines: list[bytes]
    seqs: list[int]
    keys: list[bytes]
    last_at: int
    last_fence: int
    wide_seq: int | None
    size: int


def stamp(drafts: list[Draft], *, floor: int, at: int, now: int, head: int) -> Stamped:
    """Give drafts their numbers and times, and seal them."""
    entries: list[AnyEntry] = []
    lines: list[bytes] = []
    fence, wide, size = 0, None, 0
    last_at = at
    for draft, stamps, last_at in number(drafts, floor=floor, at=at, now=now, head=head):  # noqa: B007
        line, entry = draft.sealed(stamps)
        entries.append(entry)
        lines.append(line[:-1])
        size += len(line)
        if draft.is_fence:
            fence = entry.seq
        if draft.is_wide:
            wide = entry.seq
    seqs = [entry.seq for entry in entries]
    return Stamped(entries, lines, seqs, [key_of(draft.id) for draft in drafts], last_at, fence, wide, size)


class LogEnd(Struct, frozen=True):
    """Where a log ends, as far as we know."""

    seq: int
    at: int


class PostgresLog:
    """See `Log`."""

    def __init__(
        self, pool: Pool, watch: Watch, clock: Clock, session_id: str, num: int, root: int, tail: LogEnd | None
    ) -> None:
        self.id = session_id
        self._pool = pool
        self._watch = watch
        self._is_watched = False
        self._unwatched_until = 0.0
        self._closings = 0
        self._clock = clock
        self._num = num
        self._tenant = watch.leases.tenant
        self._number, self._owner, self._watched = _int8(num), _int4(self._tenant), watch_name(num).encode()
        self._root = root
        self._tail = tail
        self._mutex = threading.RLock()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process: whoever holds the lock is not here."""
        self._mutex = threading.RLock()

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    def append(
        self, drafts: list[Draft], *, after: int, head: int, once: bool = False, alone: bool = False
    ) -> list[AnyEntry]:
        """See `Log.append`. It is durable at once: to come back for that would cost a second round trip."""
        sent: list[list[bytes]] = []
        limit = after if any(draft.is_fence for draft in drafts) else NO_FENCE

        def job(connection: Connection, again: bool) -> list[AnyEntry]:
            tail = self._tail
            if tail is not None and not again and not (alone and tail.seq > after):
                new = stamp(drafts, floor=tail.seq, at=tail.at, now=self._clock(), head=head)
                sent.append(new.lines)
                try:
                    if self._write(connection, new, tail, limit, self._watch.leases.kept):
                        return new.entries
                except psycopg.errors.UniqueViolation:
                    sent.pop()  # it was refused whole: the id was there before
            # Somebody else wrote, or an answer of ours was lost, or there is something to refuse: have a close look.
            self._tail = None
            with connection.transaction():
                return self._settle(connection, drafts, after, head, once, alone, limit, sent)

        with self._mutex:
            self._is_watched = False
            entries = self._pool.run(f"appending to session {self.id}", job)
            if self._is_watched:
                self._watch.teller.mark(self._num)
            return entries

    def _write(self, connection: Connection, new: Stamped, tail: LogEnd, limit: int, lease: Lease | None) -> bool:
        """One statement: whether the log was as we thought, and took them."""
        values: list[bytes | None] = [
            self._number, _int8(new.seqs[-1]), _int8(new.last_at), _int8(new.last_fence),
            None if new.wide_seq is None else _int8(new.wide_seq), _int8(new.size), _int8(tail.seq), _int8(limit),
            self._owner,
        ]  # fmt: skip
        now = time.monotonic()
        is_one = len(new.lines) == 1
        if is_one:
            what = (_int8(new.seqs[0]), new.keys[0], new.lines[0])
        else:
            what = (array("int8", list(map(_int8, new.seqs))), array("bytea", new.keys), array("bytea", new.lines))
        if lease is not None:
            statement = _APPEND_ONE_KEEPING if is_one else _APPEND_MANY_KEEPING
            done = connection.call(statement, [*values, self._watched, *what, lease.name.encode()])
        elif now < self._unwatched_until:
            done = connection.call(_APPEND_ONE_UNWATCHED if is_one else _APPEND_MANY_UNWATCHED, [*values, *what])
        else:
            done = connection.call(_APPEND_ONE if is_one else _APPEND_MANY, [*values, self._watched, *what])
        if done.ntuples != len(new.lines):
            return False
        self._tail = LogEnd(new.seqs[-1], new.last_at)
        self._is_watched = done.get_value(0, 0) == b"\0"
        if not self._is_watched and now >= self._unwatched_until:
            self._unwatched_until = now + _ASK_AGAIN_S
        return True

    def _settle(
        self,
        connection: Connection,
        drafts: list[Draft],
        after: int,
        head: int,
        once: bool,
        alone: bool,
        limit: int,
        sent: list[list[bytes]],
    ) -> list[AnyEntry]:
        """The same with the session's row locked, so that what we find out stays true until we have written."""
        lease = self._watch.leases.kept_in(connection)
        row = connection.execute(LOCK, (self._tenant, self._num)).fetchone()
        if row is None or row[0] != "live":
            raise NotFound(f"session {self.id} is gone from its place", hint="it was deleted")
        _, last_seq, last_at, last_fence = row
        if known := self._answer_known(connection, drafts, once, sent):
            return known
        if last_fence > limit or (alone and last_seq > after):
            raise self._conflict(connection, after, alone)
        tail = LogEnd(last_seq, last_at)
        new = stamp(drafts, floor=tail.seq, at=tail.at, now=self._clock(), head=head)
        sent.append(new.lines)
        try:
            written = self._write(connection, new, tail, limit, lease)
        except psycopg.errors.UniqueViolation:
            raise AlreadyExists(f"an entry id is twice among {len(drafts)} drafts for session {self.id}") from None
        if not written:
            raise Corrupt(f"session {self.id} changed under a lock", hint="the tables are not as turnlog made them")
        return new.entries

    def _answer_known(
        self, connection: Connection, drafts: list[Draft], once: bool, sent: list[list[bytes]]
    ) -> list[AnyEntry]:
        """Entries that are there already under the ids of these drafts."""
        keys = [key_of(draft.id) for draft in drafts]
        rows = connection.execute(PRESENT, (self._tenant, self._root, self._num, keys), binary=True).fetchall()
        known = {bytes(key): bytes(line) for key, line in rows}
        present = [known[key] for key in keys if key in known]
        if not present:
            return []
        # What we sent before the connection broke is not somebody else's.
        if len(present) < len(drafts) or (once and present not in sent):
            taken = next(draft.id for draft, key in zip(drafts, keys, strict=True) if key in known)
            raise AlreadyExists(f"the entry id {taken!r} is already in session {self.id}")
        return [_entry(line, self.id) for line in present]

    def _conflict(self, connection: Connection, after: int, alone: bool) -> Conflict:
        found: AnyEntry | None = None
        for _, line in self._pages(connection, after, NO_FENCE):
            entry = _entry(line, self.id)
            if alone or is_fence(entry):
                found = entry
                break
        what = f"entry {found.seq} ({found.type}, {found.id})" if found is not None else "an entry"
        return Conflict(
            f"{what} of another writer came after entry {after}",
            hint="call refresh() on the session and append again, or append with rebase=True",
        )

    def _pages(self, connection: Connection, low: int, high: int) -> Iterator[tuple[int, bytes]]:
        where = (self._tenant, self._root, self._num)
        while rows := connection.execute(
            _READ_FORWARDS, (*where, low, high, _PAGE, _PAGE_BYTES), binary=True
        ).fetchall():
            for seq, line in rows:
                yield seq, bytes(line)
            low = rows[-1][0]

    def sync(self, seq: int) -> None:
        """See `Log.sync`. Whatever anybody can see is durable already."""

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """See `Log.read`."""
        for seq, line in self._rows(after, NO_FENCE if before is None else before, reverse=reverse):
            yield from read_line(line, seq)

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        """See `Log.lines`."""
        for seq, line in self._rows(after, NO_FENCE, reverse=False):
            for item in read_line(line, seq):
                yield item if isinstance(item, Damage) else WrittenLine(item, bare(line))

    def _rows(self, low: int, high: int, *, reverse: bool) -> Iterator[tuple[int, bytes]]:
        seen = pages = 0
        size = _FIRST_PAGE  # many want no more than the newest few
        while low + 1 < high:
            values = (self._tenant, self._root, self._num, low, high, size, _PAGE_BYTES)
            query = _READ_BACKWARDS if reverse else _READ_FORWARDS
            rows = self._pool.rows(f"reading session {self.id}", query, values)
            pages += 1
            for seq, line in rows:
                yield seq, bytes(line)
            seen += len(rows)
            if len(rows) < size and sum(len(line) for _, line in rows) < _PAGE_BYTES:
                break
            size = _PAGE
            if reverse:
                high = rows[-1][0]
            else:
                low = rows[-1][0]
        if pages > 1 or not seen:
            self._end()  # raises if the log went away meanwhile, which must not look like its end

    def _end(self) -> int:
        rows = self._pool.rows(
            f"looking at session {self.id}",
            "select last_seq from turnlog.session where tenant = %s and num = %s",
            (self._tenant, self._num),
        )
        if not rows:
            raise NotFound(f"session {self.id} is gone from its place", hint="it was purged")
        return rows[0][0]

    def find(self, entry_id: str) -> AnyEntry | None:
        """See `Indexed`."""
        values = (self._tenant, self._root, self._num, [key_of(entry_id)])
        rows = self._pool.rows(f"looking in session {self.id}", PRESENT, values)
        return _entry(bytes(rows[0][1]), self.id) if rows else None

    def stamp(self) -> object:
        """See `Stamping`."""
        return self._num, self._end()

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """See `Log.wait`. Longer than asked, because it is told; but messages may be lost."""
        if seconds:
            closings = self._closings
            self._watch.listener.wait(self._num, max(seconds, _LOOK_S), lambda: self._closings != closings)
        return self._end() != seq

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """See `Telling`."""
        return self._watch.listener.subscribe(self._num, tell)

    def close(self) -> None:
        """See `Log.close`. It holds nothing open."""
        self._closings += 1
        self._watch.listener.stir()


def read_line(line: bytes, seq: int) -> Iterator[AnyEntry | Damage]:
    """The entry of a row, or what is wrong with it. There are no offsets here: the `seq` says where."""
    try:
        item = decode(line)
    except Unreadable as why:
        yield Damage(seq, len(line), why.kind)
        return
    if isinstance(item, Flawed):
        yield Damage(seq, len(line), item.kind, item.entry.seq)
        yield item.entry
    else:
        yield item


def _entry(line: bytes, session_id: str) -> AnyEntry:
    for item in read_line(line, 0):
        if isinstance(item, Entry):
            return item
    raise Corrupt(f"an entry of session {session_id} cannot be read", hint="the database gave back other bytes")
