"""A log's file as the store makes, hands on and takes over: first lines, bare lines, the beginning that forks need."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.errors import Conflict, Corrupt
from turnlog.log.assemble import forward
from turnlog.log.codec import Damage, is_verified
from turnlog.log.draft import Draft, to_ms
from turnlog.log.entry import AnyEntry, is_wide
from turnlog.log.written import WrittenLine, entries_of, entry_of, with_hints
from turnlog.store.files.disk import as_error, disk_errors
from turnlog.store.files.handle import identity
from turnlog.store.files.lines import last_newline
from turnlog.store.files.lines import lines as lines_of
from turnlog.store.files.logfile import LogFile
from turnlog.store.files.reading import prefix, written_after
from turnlog.store.files.tail import Tail


class SessionFile(LogFile):
    """See `LogFile`."""

    def begin(self, drafts: list[Draft], seq: int) -> None:
        """The first entries of a new log, synced: the file has no name yet that anybody looks for."""
        self._file.identify()
        self._tail = Tail(floor=seq - 1)
        for draft in drafts:
            self._write(self._tail, [draft], 0)  # no batch: the file is there as a whole, or not at all
        self._sync(self._tail.last)

    def begin_with(self, lines: list[bytes]) -> None:
        """The same with lines of another copy of it."""
        self._file.identify()
        self._tail = Tail()
        self._take(self._tail, lines, [entry_of(item) for item in entries_of(lines, after=0)])
        self._sync(self._tail.last)

    def adopt(self, lines: list[bytes], *, after: int) -> None:
        """See `Store.adopt`. What an interrupted one left behind is sealed off as for any writer."""
        entries = [entry_of(item) for item in entries_of(lines, after=after)]
        with self._mutex:
            try:
                self._open(for_writing=True)
                self._alone(lambda: self._adopt_lines(lines, entries, after))
            except OSError as error:
                raise as_error(error, f"appending to session {self.id}") from error
        self.sync(entries[-1].seq)

    def _adopt_lines(self, lines: list[bytes], entries: list[AnyEntry], after: int) -> None:
        """Under the lock."""
        tail = self._end()
        if tail.last != after:
            raise Conflict(f"session {self.id} ends with entry {tail.last}, not {after}", hint="look again, and go on")
        if tail.damaged:
            tail = self._without_remains(tail)
        if tail.damaged and not is_verified(lines[0]):
            raise Corrupt(
                f"session {self.id} ends in {tail.damaged} bytes that an edited line cannot seal off",
                hint="repair it with `turnlog doctor --repair`",
            )
        self._be_sure_of(tail)
        for begin, end in _batches(entries):
            self._take(tail, lines[begin:end], entries[begin:end])
            if end < len(entries) and self._durable:
                # Of one write a power cut may leave the end and not the beginning, and nobody would notice a gap.
                self._sync_or_give_up()
                self._unsynced.done(tail.last)

    def _without_remains(self, tail: Tail) -> Tail:
        """What an unfinished batch left has numbers that are needed now; it was never acknowledged, so it goes."""
        read = self._file.read
        items = forward(lines_of(read, tail.good, last_newline(read, tail.end)), last=tail.last)
        remains = [item.offset for item in items if isinstance(item, Damage) and item.kind == "unfinished"]
        if not remains:
            return tail
        self._disk.ftruncate(self._file.fd, min(remains))
        return self._look(min(remains))

    def _take(self, tail: Tail, lines: list[bytes], entries: list[AnyEntry]) -> None:
        torn = tail.damaged > 0 and self._file.read(1, tail.end - 1) != b"\n"
        sealed = tail.damaged + torn if tail.damaged else 0
        out, wide, at = [b"\n"] if torn else [], tail.wide, tail.at
        offset = tail.end + torn
        for line, entry in zip(lines, entries, strict=True):
            placed = with_hints(line, wide=wide, sealed=sealed) + b"\n"
            if is_wide(entry):
                wide = offset
            out.append(placed)
            offset, sealed = offset + len(placed), 0
            at = at if entry.at is None else max(at, to_ms(entry.at))
        self._put(tail, b"".join(out), entries, at, wide, is_batch=len(entries) > 1)

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        """See `Log.lines`."""
        return self._read(lambda read, size: written_after(read, size, after))

    def stamp(self) -> object | None:
        """See `Log.stamp`."""
        with disk_errors(f"looking at session {self.id}"):
            status = self._disk.stat(self._file.path)
        return (*identity(status), status.st_size, status.st_mtime_ns)

    def prefix(self, seq: int) -> bytes:
        """The log up to that entry, to the byte, with the rest of its batch."""
        with self._mutex:
            self._open()
            return prefix(self._file.read, self._file.size(), seq)


def _batches(entries: list[AnyEntry]) -> Iterator[tuple[int, int]]:
    """From where to where each batch reaches; an entry without one is alone."""
    begin = 0
    for end, entry in enumerate(entries[1:], 1):
        before = entries[begin]
        if not before.batch or (entry.batch, entry.seq + entry.more) != (before.batch, before.seq + before.more):
            yield begin, end
            begin = end
    yield begin, len(entries)
