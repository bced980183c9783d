"""One session's log as rows: whose turn it is, what is in it already, and reading it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import psycopg

from turnlog.errors import AlreadyExists, Conflict, Corrupt, NotFound
from turnlog.log.codec import Damage, Flawed, Unreadable, decode
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry, Entry, is_fence
from turnlog.log.written import WrittenLine, bare
from turnlog.store import Clock, in_order
from turnlog.store.broadcast import LiveText
from turnlog.store.postgres.broadcast import NoticeInbox
from turnlog.store.postgres.names import key_of
from turnlog.store.postgres.pool import Connection, Pool, renew_after_fork
from turnlog.store.postgres.rows import NO_FENCE, PRESENT, LogEnd, LogRows, stamp
from turnlog.store.postgres.watch import Watch

_FIRST_PAGE, _PAGE = 64, 1024
_PAGE_BYTES = 1 << 20
_LOOK_S = 1.0
"""How often a waiting reader polls, besides being notified."""

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


class PostgresLog:
    """See `Log`."""

    def __init__(
        self, pool: Pool, watch: Watch, clock: Clock, session_id: str, num: int, root: int, tail: LogEnd | None
    ) -> None:
        self.id = session_id
        self._rows = LogRows(pool, watch, session_id, num, root, tail)
        self._pool = pool
        self._watch = watch
        self._clock = clock
        self._closings = 0
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
        rows = self._rows
        sent: list[list[bytes]] = []
        limit = after if any(draft.is_fence for draft in drafts) else NO_FENCE

        def job(connection: Connection, again: bool) -> list[AnyEntry]:
            tail = rows.tail
            if tail is not None and not again and not (alone and tail.seq > after):
                new = stamp(drafts, floor=tail.seq, at=tail.at, now=self._clock(), head=head)
                sent.append(new.lines)
                try:
                    if rows.write(connection, new, tail, limit, self._watch.leases.kept):
                        return new.entries
                except psycopg.errors.UniqueViolation:
                    sent.pop()  # it was refused whole: the id was there before
            # Somebody else wrote, or an answer of ours was lost, or there is something to refuse: have a close look.
            rows.tail = None
            with connection.transaction():
                return self._settle(connection, drafts, after, head, once, alone, limit, sent)

        with self._mutex:
            return rows.run(job)

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
        row = self._rows.lock(connection)
        if row is None or row[0] != "live":
            raise NotFound(f"session {self.id} is gone from its place", hint="it was deleted")
        _, last_seq, last_at, last_fence = row
        present = self._known(connection, drafts, once, sent)
        rest = [draft for draft in drafts if draft.id not in present]
        if not rest:
            return list(present.values())
        limit = limit if any(draft.is_fence for draft in rest) else NO_FENCE
        if last_fence > limit or (alone and last_seq > after):
            raise self._conflict(connection, after, alone)
        tail = LogEnd(last_seq, last_at)
        new = stamp(rest, floor=tail.seq, at=tail.at, now=self._clock(), head=head)
        sent.append(new.lines)
        try:
            written = self._rows.write(connection, new, tail, limit, lease)
        except psycopg.errors.UniqueViolation:
            raise AlreadyExists(f"an entry id is twice among {len(drafts)} drafts for session {self.id}") from None
        if not written:
            raise Corrupt(f"session {self.id} changed under a lock", hint="the tables are not as turnlog made them")
        return in_order(drafts, present, new.entries)

    def _known(
        self, connection: Connection, drafts: list[Draft], once: bool, sent: list[list[bytes]]
    ) -> dict[str, AnyEntry]:
        """Entries that are there already under the ids of these drafts."""
        keys = {draft.id: key_of(draft.id) for draft in drafts}
        there = self._rows.present(connection, list(keys.values()))
        lines = {entry_id: there[key] for entry_id, key in keys.items() if key in there}
        # What we sent before the connection broke is not somebody else's.
        if once and lines and list(lines.values()) not in sent:
            raise AlreadyExists(f"the entry id {next(iter(lines))!r} is already in session {self.id}")
        return {entry_id: _entry(line, self.id) for entry_id, line in lines.items()}

    def _conflict(self, connection: Connection, after: int, alone: bool) -> Conflict:
        newest: AnyEntry | None = None
        for _, line in self._pages(connection, after, NO_FENCE):
            entry = _entry(line, self.id)
            if alone or is_fence(entry):
                newest = entry
                break
        what = f"entry {newest.seq} ({newest.type}, {newest.id})" if newest is not None else "an entry"
        return Conflict(
            f"{what} of another writer came after entry {after}",
            hint="call refresh() on the session and append again, or append with rebase=True",
        )

    def _pages(self, connection: Connection, low: int, high: int) -> Iterator[tuple[int, bytes]]:
        while rows := connection.execute(
            _READ_FORWARDS, (*self._rows.place, low, high, _PAGE, _PAGE_BYTES), binary=True
        ).fetchall():
            for seq, line in rows:
                yield seq, bytes(line)
            low = rows[-1][0]

    def sync(self, seq: int) -> None:
        """See `Log.sync`. Whatever anybody can see is durable already."""

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
        size = _FIRST_PAGE  # many want no more than the newest few
        while low + 1 < high:
            values = (*self._rows.place, low, high, size, _PAGE_BYTES)
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
            (self._rows.tenant, self._rows.num),
        )
        if not rows:
            raise NotFound(f"session {self.id} is gone from its place", hint="it was purged")
        return rows[0][0]

    def find(self, entry_id: str) -> AnyEntry | None:
        values = (*self._rows.place, [key_of(entry_id)])
        rows = self._pool.rows(f"looking in session {self.id}", PRESENT, values)
        return _entry(bytes(rows[0][1]), self.id) if rows else None

    def stamp(self) -> object:
        return self._rows.num, self._end(), self.version()

    def version(self) -> object:
        query = "select erased from turnlog.session where tenant = %s and num = %s"
        rows = self._pool.rows(f"looking at session {self.id}", query, (self._rows.tenant, self._rows.num))
        return rows[0][0] if rows else None

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """See `Log.wait`. Longer than asked, because it is told; but messages may be lost."""
        if seconds:
            closings = self._closings
            self._watch.wait(self._rows.num, max(seconds, _LOOK_S), lambda: self._closings != closings)
        return self._end() != seq

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        return self._watch.subscribe(self._rows.num, tell)

    def speak(self, text: LiveText) -> Callable[[], None]:
        return self._watch.speak(self._rows.num, text)

    def hear(self) -> NoticeInbox | None:
        return self._watch.hear(self._rows.num)

    def close(self) -> None:
        """See `Log.close`. It holds nothing open."""
        self._closings += 1
        self._watch.stir(self._rows.num)


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
