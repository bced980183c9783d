"""The log of one session as rows: conflicts, repeated ids, appending and reading."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg
from msgspec import Struct

from turnlog.errors import AlreadyExists, Conflict, Corrupt
from turnlog.log.codec import Damage, Flawed, Unreadable, decode
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry, is_fence
from turnlog.log.written import WrittenLine, bare
from turnlog.store import Clock, in_order
from turnlog.store.broadcast import LiveText
from turnlog.store.forked import renew_after_fork
from turnlog.store.postgres.broadcast import NoticeInbox
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection, Pool
from turnlog.store.postgres.rows import NO_FENCE, PRESENT, LogEnd, LogRow, LogRows, stamp
from turnlog.store.postgres.watch import Watch
from turnlog.store.refusal import came_after, entry_id_taken, session_gone

_FIRST_PAGE, _PAGE = 64, 1024
_PAGE_BYTES = 1 << 20

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


class _Append(Struct, frozen=True):
    """One append in progress: the caller's request, and every set of lines that was sent."""

    drafts: list[Draft]
    after: int
    head: int
    once: bool
    alone: bool
    sent: list[list[bytes]] = []

    def limit(self, drafts: list[Draft]) -> int:
        """Return the last fence that the log may have for these drafts to be appended."""
        return self.after if any(draft.is_fence for draft in drafts) else NO_FENCE


class PostgresLog:
    """See `Log`."""

    def __init__(self, pool: Pool, watch: Watch, clock: Clock, row: LogRow) -> None:
        self.id = row.id
        self._rows = LogRows(pool, watch, row)
        self._pool = pool
        self._watch = watch
        self._clock = clock
        self._closings = 0
        self._mutex = threading.RLock()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Replace the lock in a child process: its holder may be a thread of the parent."""
        self._mutex = threading.RLock()

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    def append(
        self, drafts: list[Draft], *, after: int, head: int, once: bool = False, alone: bool = False
    ) -> list[AnyEntry]:
        """See `Log.append`. The append is durable at once, because a separate sync would cost a second round trip."""
        if not drafts:
            return []
        rows = self._rows
        asked = _Append(drafts, after, head, once, alone)
        limit = asked.limit(drafts)

        def job(connection: Connection, again: bool) -> list[AnyEntry]:
            tail = rows.tail
            if tail is not None and not again and not (alone and tail.seq > after):
                new = stamp(drafts, floor=tail.seq, at=tail.at, now=self._clock(), head=head)
                asked.sent.append(new.lines)
                try:
                    if rows.write(connection, new, tail, limit, self._watch.leases.kept):
                        return new.entries
                except psycopg.errors.UniqueViolation:
                    asked.sent.pop()  # it was refused whole: the id was there before
            # Another writer appended, an answer of ours was lost, or something must be refused: check with a lock.
            rows.tail = None
            with connection.transaction():
                return self._append_locked(connection, asked)

        with self._mutex:
            return rows.run(job)

    def _append_locked(self, connection: Connection, asked: _Append) -> list[AnyEntry]:
        """Append with the session's row locked, so that all checks stay valid until the lines are written."""
        lease = self._watch.leases.kept_in(connection)
        log = self._rows.lock(connection)
        if log is None or log.place != "live":
            raise session_gone(self.id)
        present = self._known(connection, asked)
        rest = [draft for draft in asked.drafts if draft.id not in present]
        if not rest:
            return in_order(asked.drafts, present, [])
        limit = asked.limit(rest)
        if log.last_fence > limit or (asked.alone and log.last_seq > asked.after):
            raise self._conflict(connection, asked)
        tail = LogEnd(log.last_seq, log.last_ms)
        new = stamp(rest, floor=tail.seq, at=tail.at, now=self._clock(), head=asked.head)
        asked.sent.append(new.lines)
        try:
            written = self._rows.write(connection, new, tail, limit, lease)
        except psycopg.errors.UniqueViolation:
            message = f"an entry id is twice among {len(asked.drafts)} drafts for session {self.id}"
            raise AlreadyExists(message) from None
        if not written:
            raise Corrupt(f"session {self.id} changed under a lock", hint="the tables are not as turnlog made them")
        return in_order(asked.drafts, present, new.entries)

    def _known(self, connection: Connection, asked: _Append) -> dict[str, AnyEntry]:
        """Return the entries that are already in the log under the drafts' ids."""
        keys = {draft.id: key_of(draft.id) for draft in asked.drafts}
        existing = self._rows.present(connection, list(keys.values()))
        lines = {entry_id: existing[key] for entry_id, key in keys.items() if key in existing}
        # Lines that we sent before the connection broke are our own.
        if asked.once and lines and list(lines.values()) not in asked.sent:
            raise entry_id_taken(self.id, next(iter(lines)))
        return {entry_id: _entry(line, self.id) for entry_id, line in lines.items()}

    def _conflict(self, connection: Connection, asked: _Append) -> Conflict:
        newest: AnyEntry | None = None
        for _, line in self._pages(connection, asked.after, NO_FENCE):
            entry = _entry(line, self.id)
            if asked.alone or is_fence(entry):
                newest = entry
                break
        return came_after(asked.after, newest)

    def _pages(self, connection: Connection, low: int, high: int) -> Iterator[tuple[int, bytes]]:
        while rows := connection.execute(
            _READ_FORWARDS, (*self._rows.key_columns, low, high, _PAGE, _PAGE_BYTES), binary=True
        ).fetchall():
            for seq, line in rows:
                yield seq, bytes(line)
            low = rows[-1][0]

    def sync(self, seq: int) -> None:
        """See `Log.sync`. Every visible entry is already durable."""

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        for seq, line in self._lines(after, NO_FENCE if before is None else before, reverse=reverse):
            yield from read_line(line, seq)

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        for seq, line in self._lines(after, NO_FENCE, reverse=False):
            for item in read_line(line, seq):
                yield item if isinstance(item, Damage) else WrittenLine(item, bare(line))

    def _lines(self, low: int, high: int, *, reverse: bool) -> Iterator[tuple[int, bytes]]:
        seen = pages = 0
        size = _FIRST_PAGE  # many readers want only the newest few
        while low + 1 < high:
            values = (*self._rows.key_columns, low, high, size, _PAGE_BYTES)
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
            self._end()  # raises if the log was removed meanwhile, which must not look like its end

    def _end(self) -> int:
        rows = self._pool.rows(
            f"looking at session {self.id}",
            "select last_seq from turnlog.session where tenant = %s and num = %s",
            (self._rows.tenant, self._rows.num),
        )
        if not rows:
            raise session_gone(self.id)
        return rows[0][0]

    def find(self, entry_id: str) -> AnyEntry | None:
        values = (*self._rows.key_columns, [key_of(entry_id)])
        rows = self._pool.rows(f"looking in session {self.id}", PRESENT, values)
        return _entry(bytes(rows[0][1]), self.id) if rows else None

    def stamp(self) -> object:
        return self._rows.num, self._end(), self.version()

    def version(self) -> object:
        query = "select erased from turnlog.session where tenant = %s and num = %s"
        rows = self._pool.rows(f"looking at session {self.id}", query, (self._rows.tenant, self._rows.num))
        return rows[0][0] if rows else None

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """See `Log.wait`. A notification ends the wait. The log is read after it in any case: some get lost."""
        if seconds:
            closings = self._closings
            self._watch.wait(self._rows.num, seconds, lambda: self._closings != closings)
        return self._end() != seq

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watch.subscribe(self._rows.num, callback)

    def publish(self, text: LiveText) -> Callable[[], None]:
        return self._watch.publish(self._rows.num, text)

    def open_inbox(self) -> NoticeInbox | None:
        return self._watch.open_inbox(self._rows.num)

    def close(self) -> None:
        """See `Log.close`. Nothing is held open; this ends waiting readers."""
        self._closings += 1
        self._watch.wake(self._rows.num)


def read_line(line: bytes, seq: int) -> Iterator[AnyEntry | Damage]:
    """Yield the entry of a row, or its damage. Rows have no offsets: `Damage.offset` is the `seq`."""
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


def entry_in(line: bytes) -> AnyEntry | None:
    """Return the entry of a row; None if it cannot be read."""
    return next((item for item in read_line(line, 0) if not isinstance(item, Damage)), None)


def _entry(line: bytes, session_id: str) -> AnyEntry:
    entry = entry_in(line)
    if entry is None:
        raise Corrupt(f"an entry of session {session_id} cannot be read", hint="the database gave back other bytes")
    return entry
