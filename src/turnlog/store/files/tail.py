"""The end of a log as a writer knows it: its offset, the last entry that counts, and the numbers that are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from turnlog.log.assemble import Oversize, backward, forward
from turnlog.log.codec import MAX_LINE, Damage, Flawed, Unreadable, decode, is_verified
from turnlog.log.draft import Draft, stamp_drafts, to_ms
from turnlog.log.entry import AnyEntry, is_wide
from turnlog.log.written import entry_of
from turnlog.store.files.lines import Read, last_newline, lines, lines_back

_SHORTEST_LINE = 64
"""The least bytes per entry: an upper bound for the number of entries in unreadable bytes."""
_TRACE = 96
"""The number of bytes by which a log is recognised: more than the checksum of the last line, fewer than a page."""

RecordRead = Callable[[str, int], None]
"""Called with the id and `seq` of every entry that is read."""


class PlacedLines(Struct, frozen=True, gc=False):
    """Lines to append to a log, and the state of its end after that."""

    data: bytes
    entries: list[AnyEntry]
    """The entries as readers will see them."""
    seqs: dict[str, int]
    """The numbers of the entries, by id."""
    at: int
    wide: int


class Tail:
    """The end of a log when it was last read."""

    __slots__ = ("at", "end", "ends_in_batch", "floor", "good", "last", "last_id", "trace", "wide")

    def __init__(self, *, floor: int = 0) -> None:
        self.end = 0
        """The offset up to which the log was read."""
        self.good = 0
        """The offset just after the last line that counts; the bytes from there to `end` are unfinished or damaged."""
        self.last = 0
        """The last `seq` that counts."""
        self.last_id = ""
        """The id of the last entry that counts."""
        self.ends_in_batch = False
        """Whether the last entry that counts is part of a batch."""
        self.floor = floor
        """The next `seq` is above this, and so above any that damaged bytes may have held."""
        self.at = 0
        """The time of the last entry, in milliseconds since 1970."""
        self.wide = 0
        """The offset of the newest line with session-wide facts."""
        self.trace = b""
        """The last bytes that count, to recognise the log if its file is replaced."""

    @property
    def damaged(self) -> int:
        """The number of bytes at the end that do not count."""
        return self.end - self.good

    def read_end(self, read: Read, size: int, record: RecordRead) -> None:
        """Read the end of a log, newest line first."""
        ends: dict[int, int] = {}
        hidden = 0
        for item in backward(_noted(lines_back(read, last_newline(read, size)), ends)):
            if isinstance(item, Damage):
                hidden = max(hidden, item.seq or 0)
                continue
            offset, entry = item
            if not self.good:
                self._note(offset, entry, record)
                self.good = _end_of(offset, ends)
            else:
                self._note_stamps(offset, entry)
            if not entry.unverified:
                break
        self._finish(read, size, hidden)

    def catch_up(self, read: Read, size: int, record: RecordRead) -> None:
        """Read what was appended since the end was last read."""
        ends: dict[int, int] = {}
        hidden, good = 0, self.good
        for item in forward(_noted(lines(read, good, last_newline(read, size)), ends), last=self.last):
            if isinstance(item, Damage):
                hidden = max(hidden, item.seq or 0)
                continue
            self._note(*item, record)
            self.good = _end_of(item[0], ends)
            # A spliced line holds several entries, which begin inside it.
            start = item[0] if item[0] in ends else max(offset for offset in ends if offset < item[0])
            while (oldest := next(iter(ends))) < start:
                del ends[oldest]
        self._finish(read, size, hidden)

    def place(self, read: Read, drafts: list[Draft], *, head: int, now: int, doubted: dict[str, int]) -> PlacedLines:
        """Return a batch with its stamps for this place. `doubted` are ids that may be in the log already, or lost."""
        damaged, out = self.end - self.good, list[bytes]()
        if damaged and read(1, self.end - 1) != b"\n":
            out, damaged = [b"\n"], damaged + 1
        entries: list[AnyEntry] = []
        seqs: dict[str, int] = {}
        wide, offset, at = self.wide, self.good + damaged, self.at
        for one in stamp_drafts(drafts, floor=self.floor, at=at, now=now, head=head):
            draft, stamps = one.draft, one.stamps
            if damaged:
                stamps, damaged = f'{stamps},"sealed":{damaged}', 0
            if wide:
                stamps = f'{stamps},"wide":{wide}'
            if draft.id in doubted:
                stamps = f'{stamps},"again":{doubted[draft.id]}'
            line, entry = draft.sealed(stamps)
            entries.append(entry)
            seqs[entry.id] = entry.seq
            out.append(line)
            if draft.is_wide:
                wide = offset
            offset, at = offset + len(line), one.at
        return PlacedLines(out[0] if len(out) == 1 else b"".join(out), entries, seqs, at, wide)

    def record_written(self, new: PlacedLines) -> None:
        """Update the tail after our own append."""
        data, entries = new.data, new.entries
        self.ends_in_batch = len(entries) > 1
        self.end += len(data)
        self.good = self.end
        self.last = self.floor = entries[-1].seq
        self.last_id = entries[-1].id
        self.at = new.at
        self.wide = new.wide
        self.trace = data[-_TRACE:]

    def is_in(self, read: Read, size: int) -> bool:
        """Whether that file holds the log that this tail describes."""
        if size < self.good:
            return False
        if read(len(self.trace), self.good - len(self.trace)) == self.trace:
            return True
        # The last line may have been erased: its length, number and id stay the same.
        for _, line in lines_back(read, self.good):
            try:
                entry = entry_of(decode(line))
            except Unreadable:
                return False
            return (entry.seq, entry.id) == (self.last, self.last_id) and is_verified(line)
        return False

    def _note(self, offset: int, entry: AnyEntry, record: RecordRead) -> None:
        self.last, self.last_id = entry.seq, entry.id
        self.ends_in_batch = entry.batch > 1
        self.floor = max(self.floor, entry.seq)
        self._note_stamps(offset, entry)
        record(entry.id, entry.seq)

    def _note_stamps(self, offset: int, entry: AnyEntry) -> None:
        """Note the time and the session-wide facts as of an entry. The stamps of an edited line are not trusted."""
        if is_wide(entry):
            self.wide = max(self.wide, offset)
        if not entry.unverified:
            self.wide = max(self.wide, entry.wide)
            self.at = max(self.at, to_ms(entry.at) if entry.at is not None else 0)

    def _finish(self, read: Read, size: int, hidden: int) -> None:
        self.end = size
        self.floor = max(self.floor, hidden)
        if self.damaged > 0:
            # Acknowledged entries that are now unreadable keep their numbers: none is used again.
            self.floor += self.damaged // _SHORTEST_LINE + 1
        start = max(0, self.good - _TRACE)
        self.trace = read(self.good - start, start)


def is_adoptable(read: Read, size: int) -> bool:
    """Whether the log ends in a complete, verified entry that only lacks its newline."""
    start = last_newline(read, size)
    if start == size or size - start > MAX_LINE:
        return False
    tail = read(size - start, start)
    try:
        return is_verified(tail) and not isinstance(decode(tail), Flawed)
    except Unreadable:
        return False


def _noted(source: Iterator[tuple[int, bytes]], ends: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    for offset, line in source:
        ends[offset] = offset + (line.length if isinstance(line, Oversize) else len(line)) + 1
        yield offset, line


def _end_of(offset: int, ends: dict[int, int]) -> int:
    """Return the end of the line that holds this entry; a spliced line holds several."""
    return ends.get(offset) or min(end for end in ends.values() if end > offset)
