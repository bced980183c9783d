"""Examining a log byte by byte: its damage, and the bytes that a repair has to blank out. Only reads."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

from turnlog.log.assemble import Oversize, forward
from turnlog.log.codec import Damage, salvage
from turnlog.log.entry import AnyEntry, is_wide
from turnlog.store.capability import Region
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.lines import Read, header_of, last_newline, lines, reader_of
from turnlog.store.files.tail import is_adoptable

_SAMPLE = 240

Visit = Callable[[AnyEntry], None]


def survey_of(disk: Disk, path: str, *, visit: Visit | None = None) -> Survey:
    """Survey a log file without locking or changing it."""
    with disk_errors(f"reading {path}"):
        fd = disk.open(path, os.O_RDONLY)
        try:
            return Survey(reader_of(disk, fd), disk.fstat(fd).st_size, visit=visit)
        finally:
            disk.close(fd)


def _offset(region: Region) -> int:
    return region.offset


class Cut(NamedTuple):
    """Bytes to blank out, and whether a line must end at their beginning or end."""

    start: int
    end: int
    breaks_before: bool = False
    breaks_after: bool = False


class Survey:
    """The result of reading a whole log: `visit` gets every entry that counts, everything else becomes a region."""

    def __init__(
        self, read: Read, size: int, *, visit: Visit | None = None, without: frozenset[int] = frozenset()
    ) -> None:
        self.regions: list[Region] = []
        self.entries = 0
        self.last = 0
        self.lines = 0
        self.size_bytes = size
        self.trace = 0
        """A checksum of the entries that count, in order."""
        self.wide = 0
        """The offset of the newest session-wide facts."""
        self._read = read
        self._visit = visit
        self._without = without
        self._waiting: dict[int, tuple[int, int]] = {}
        """Lines from which no entry was read so far: length and number, by offset."""
        self._spliced: dict[int, int] = {}
        self._spliced_starts: list[int] = []
        self._counted_inside: set[int] = set()
        """The offsets of entries that count inside spliced lines."""
        self._by_offset: dict[int, Region] = {}
        self._regions_ahead: list[Region] = []
        """Regions, by offset, of which every entry so far lies before; there may be thousands in a row."""
        self._regions_awaiting_next: list[Region] = []
        """Regions that were passed or reached, after which no entry was read yet."""
        self._end = last_newline(read, size)
        self._adopted = is_adoptable(read, size)
        self._walk()

    def _walk(self) -> None:
        for item in forward(self._lines()):
            if isinstance(item, Damage):
                self._damaged(item)
            else:
                self._counts(*item)
        for region in self._regions_ahead:
            region.older = self.last
        if self._end < self.size_bytes:
            self._tail()
        for region in self.regions:
            if region.length == 0:  # an entry inside a spliced line, out of order or of an unfinished batch
                region.length = next((n for o, n in self._spans(region.offset) if o == region.offset), 0)
        misplaced = [region for region in self.regions if region.kind == "order"]
        if misplaced:
            self._look_for_strays(misplaced)

    def _look_for_strays(self, misplaced: list[Region]) -> None:
        """Find lines out of order that must stay, because their entry does not count anywhere else."""
        wanted = {region.seq for region in misplaced}
        counted: set[tuple[int, str]] = set()
        for item in forward(lines(self._read, 0, self._end)):
            if not isinstance(item, Damage) and item[1].seq in wanted:
                counted.add((item[1].seq, item[1].id))
        for region in misplaced:
            header = header_of(self._read(region.length, region.offset))
            region.is_stray = header is None or (header.seq, header.id) not in counted
            if region.is_stray:
                self._waiting.pop(region.offset, None)
                self._counted_inside.add(region.offset)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        for offset, line in lines(self._read, 0, self._end):
            self.lines += 1
            oversize = isinstance(line, Oversize)
            if oversize or line.strip():
                self._waiting[offset] = (line.length if oversize else len(line), self.lines)
                yield offset, line
        if self._adopted:
            line = self._read(self.size_bytes - self._end, self._end)
            self._waiting[self._end] = (len(line), self.lines + 1)
            yield self._end, line

    def _counts(self, offset: int, entry: AnyEntry) -> None:
        self._place_in_regions(offset, entry.seq)
        if entry.seq in self._without:
            return
        line = self._spliced_start_of(offset)
        if line is not None:
            self._counted_inside.add(offset)
        else:
            self._waiting.pop(offset, None)
            if offset in self._by_offset:
                self._by_offset[offset].is_used = True
        self.entries += 1
        self.last = entry.seq
        self.trace = zlib.crc32(f"{entry.seq} {entry.type} {entry.id}\n".encode(), self.trace)
        if is_wide(entry):
            self.wide = offset
        if self._visit is not None:
            self._visit(entry)

    def _place_in_regions(self, offset: int, seq: int) -> None:
        """Record the entry in the regions that it is in, or is the next one after."""
        reached = bisect_right(self._regions_ahead, offset, key=_offset)
        for region in self._regions_ahead[:reached]:
            region.older = self.last
        waiting = self._regions_awaiting_next + self._regions_ahead[:reached]
        del self._regions_ahead[:reached]
        self._regions_awaiting_next = []
        for region in waiting:
            if offset < region.offset + region.length:
                region.inside.append(seq)
                self._regions_awaiting_next.append(region)
            else:
                region.newer = seq

    def _spliced_start_of(self, offset: int) -> int | None:
        """Return the start of the spliced line that contains this offset, or None."""
        index = bisect_right(self._spliced_starts, offset) - 1
        if index < 0:
            return None
        start = self._spliced_starts[index]
        return start if offset < start + self._spliced[start] else None

    def _damaged(self, damage: Damage) -> None:
        earlier = self._by_offset.get(damage.offset)
        if earlier is not None:  # the line was flawed, and now does not count either
            earlier.kind, earlier.seq = damage.kind, damage.seq
            return
        length, line = self._waiting.get(damage.offset, (0, 0))
        if damage.kind == "spliced":
            self._spliced[damage.offset] = length
            self._spliced_starts.append(damage.offset)
            del self._waiting[damage.offset]
        if not line:
            start = self._spliced_start_of(damage.offset)
            line = self._by_offset[start].line if start is not None else 0
        previous = self.regions[-1] if self.regions else None
        if (
            previous is not None
            and previous.kind == damage.kind
            and previous.seq is damage.seq is None
            and previous.offset + previous.length + 1 == damage.offset
        ):
            previous.length = damage.offset + length - previous.offset
            previous.lines += 1
            return
        self._add(Region(damage.offset, length, damage.kind, line, seq=damage.seq))

    def _tail(self) -> None:
        """Add what follows the last line: a complete entry without its newline, or the rest of a write."""
        length = self.size_bytes - self._end
        if self._adopted and self._end in self._waiting:
            return  # complete, but it does not count: already reported
        region = Region(self._end, length, "torn", self.lines + 1, is_used=self._adopted, is_last=True)
        if self._adopted:
            region.seq = self.last
        self._add(region)

    def _add(self, region: Region) -> None:
        region.older = self.last
        region.sample = self._read(_SAMPLE, region.offset)[: region.length or _SAMPLE].decode("utf-8", "replace")
        self.regions.append(region)
        self._by_offset[region.offset] = region
        insort(self._regions_ahead, region, key=_offset)

    def _spans(self, offset: int) -> list[tuple[int, int]]:
        """Return offset and length of each entry in the spliced line that contains this offset."""
        start = self._spliced_start_of(offset)
        if start is None:
            return []
        return [(start + at, length) for at, length, _ in salvage(self._read(self._spliced[start], start))]

    # ── what a repair has to do ───────────────────────────────────────────────────────────────────

    def cuts(self) -> list[Cut]:
        """Return the bytes that a repair blanks out, in order."""
        cuts = [Cut(offset, offset + length) for offset, (length, _) in self._waiting.items()]
        for start, length in self._spliced.items():
            cuts.extend(self._cut_spliced(start, start + length))
        if self._adopted:
            cuts.append(Cut(self.size_bytes, self.size_bytes, breaks_after=True))
        elif self._end < self.size_bytes:
            cuts.append(Cut(self._end, self.size_bytes, breaks_after=True))
        return sorted(cuts)

    def _cut_spliced(self, start: int, end: int) -> Iterator[Cut]:
        position = start
        for offset, length in self._spans(start):
            if offset in self._counted_inside:
                if offset > start:
                    yield Cut(position, offset, breaks_before=position > start, breaks_after=True)
                position = offset + length
        if position < end:
            yield Cut(position, end, breaks_before=position > start)
