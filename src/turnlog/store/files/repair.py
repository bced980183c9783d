"""What is wrong with a log, byte by byte, and the same log without it.

A repair moves nothing. Damaged bytes become blanks, so every line that counts stays what it was and where it was:
offsets that other lines hold (`wide`, `sealed`) still lead where they led, and a writer in another process goes on
with the repaired file as if nothing had happened. The file as it was is kept in the trash.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound
from turnlog.log.assemble import Oversize, forward
from turnlog.log.codec import Damage, salvage
from turnlog.log.draft import number, prepare, to_text
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Note, Set
from turnlog.log.ids import word
from turnlog.store import Clock
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.lines import Read, last_newline, lines
from turnlog.store.files.names import file_name
from turnlog.store.files.tail import Tail, is_adoptable

_STEP = 1 << 20
_SAMPLE = 240
_LISTED = 50
"""So many regions are named in the note; more would only make it long."""

Visit = Callable[[AnyEntry], None]


class Region(Struct):
    """A stretch of a log that is not what was written. Offsets and lengths are in bytes."""

    offset: int
    length: int
    kind: str
    """In the words of `Damage`."""
    line: int
    """The number of its first line in the file, from 1."""
    lines: int = 1
    seq: int | None = None
    """The entry that can be read in spite of it."""
    is_used: bool = False
    """Whether that entry counts, so that nothing of it is to be repaired."""
    is_last: bool = False
    """Whether no line ends after it: the remains of the last write."""
    older: int = 0
    """The last entry that counts before it; 0 if none does."""
    newer: int | None = None
    """The first entry that counts after it; None if none does."""
    sample: str = ""
    """How it begins."""


class _Cut(NamedTuple):
    """Bytes to blank out, and whether a line has to end at their beginning and at their end."""

    start: int
    end: int
    breaks_before: bool = False
    breaks_after: bool = False


class Survey:
    """One reading of a whole log: every entry that counts is shown to `visit`, everything else is a region."""

    def __init__(
        self, read: Read, size: int, *, visit: Visit | None = None, without: frozenset[int] = frozenset()
    ) -> None:
        self.regions: list[Region] = []
        self.entries = 0
        self.last = 0
        self.lines = 0
        self.size_bytes = size
        self.trace = 0
        """A checksum of which entries count, in which order."""
        self.wide = 0
        """Where the newest session-wide facts are."""
        self._read = read
        self._visit = visit
        self._without = without
        self._waiting: dict[int, tuple[int, int]] = {}
        """Lines that no entry has come from: length and number, by offset."""
        self._spliced: dict[int, int] = {}
        self._inside: set[int] = set()
        """Where entries that count begin in spliced lines."""
        self._by_offset: dict[int, Region] = {}
        self._open: list[Region] = []
        """Regions after which no entry has been met yet."""
        self._end = last_newline(read, size)
        self._adopted = is_adoptable(read, size)
        self._walk()

    def _walk(self) -> None:
        for item in forward(self._lines()):
            if isinstance(item, Damage):
                self._damaged(item)
            else:
                self._counts(*item)
        if self._end < self.size_bytes:
            self._tail()
        for region in self.regions:
            if region.length == 0:  # an entry inside a spliced line, out of order or of an unfinished batch
                region.length = next((n for o, n in self._spans(region.offset) if o == region.offset), 0)

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
        for region in self._open[:]:
            if offset < region.offset:
                region.older = entry.seq
            elif offset > region.offset:
                region.newer = entry.seq
                self._open.remove(region)
        if entry.seq in self._without:
            return
        line = self._line_of(offset)
        if line is not None:
            self._inside.add(offset)
        else:
            self._waiting.pop(offset, None)
            if offset in self._by_offset:
                self._by_offset[offset].is_used = True
        self.entries += 1
        self.last = entry.seq
        self.trace = zlib.crc32(f"{entry.seq} {entry.type} {entry.id}\n".encode(), self.trace)
        if isinstance(entry, Set) and entry.key in WIDE_FACTS:
            self.wide = offset
        if self._visit is not None:
            self._visit(entry)

    def _line_of(self, offset: int) -> int | None:
        """The spliced line that this place is in."""
        starts = list(self._spliced)
        index = bisect_right(starts, offset) - 1
        if index >= 0 and offset < starts[index] + self._spliced[starts[index]]:
            return starts[index]
        return None

    def _damaged(self, damage: Damage) -> None:
        known = self._by_offset.get(damage.offset)
        if known is not None:  # first it was not what was written, now it does not count either
            known.kind, known.seq = damage.kind, damage.seq
            return
        length, line = self._waiting.get(damage.offset, (0, 0))
        if damage.kind == "spliced":
            self._spliced[damage.offset] = length
            del self._waiting[damage.offset]
        if not line:
            start = self._line_of(damage.offset)
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
        """What follows the last line: a whole entry that only lacks its line end, or the remains of a write."""
        length = self.size_bytes - self._end
        if self._adopted and self._end in self._waiting:
            return  # whole, but it does not count: said already
        region = Region(self._end, length, "torn", self.lines + 1, is_used=self._adopted, is_last=True)
        if self._adopted:
            region.seq = self.last
        self._add(region)

    def _add(self, region: Region) -> None:
        region.older = self.last
        region.sample = self._read(_SAMPLE, region.offset)[: region.length or _SAMPLE].decode("utf-8", "replace")
        self.regions.append(region)
        self._by_offset[region.offset] = region
        self._open.append(region)

    def _spans(self, offset: int) -> list[tuple[int, int]]:
        """Where entries begin in the spliced line around this place, and how long each is."""
        start = self._line_of(offset)
        if start is None:
            return []
        return [(start + at, length) for at, length, _ in salvage(self._read(self._spliced[start], start))]

    # ── what a repair has to do ───────────────────────────────────────────────────────────────────

    def cuts(self) -> list[_Cut]:
        """The bytes that a repair blanks out, in order."""
        found = [_Cut(offset, offset + length) for offset, (length, _) in self._waiting.items()]
        for start, length in self._spliced.items():
            found.extend(self._cut_spliced(start, start + length))
        if self._adopted:
            found.append(_Cut(self.size_bytes, self.size_bytes, breaks_after=True))
        elif self._end < self.size_bytes:
            found.append(_Cut(self._end, self.size_bytes, breaks_after=True))
        return sorted(found)

    def _cut_spliced(self, start: int, end: int) -> Iterator[_Cut]:
        position = start
        for offset, length in self._spans(start):
            if offset in self._inside:
                if offset > start:
                    yield _Cut(position, offset, breaks_before=position > start, breaks_after=True)
                position = offset + length
        if position < end:
            yield _Cut(position, end, breaks_before=position > start)


class Repaired(Struct, frozen=True):
    """What a repair did."""

    blanked_bytes: int
    original: str
    """Where the file as it was is kept."""
    note: int
    """The `seq` of the note that says so in the log."""


def look(disk: Disk, path: str, *, visit: Visit | None = None) -> Survey:
    """Read a whole log. Nothing is locked, nothing is changed."""
    with disk_errors(f"reading {path}"):
        fd = disk.open(path, os.O_RDONLY)
        try:
            return Survey(_reader(disk, fd), disk.fstat(fd).st_size, visit=visit)
        finally:
            disk.close(fd)


def repair(
    disk: Disk, folder: str, session_id: str, *, clock: Clock, without: frozenset[int] = frozenset()
) -> Repaired | None:
    """Blank out what is damaged in a session's log, and the entries in `without`. None if there is nothing to do.

    Under the writer's lock: the original gets a second name in the trash, the new file takes over its first
    name in one step, and each is on the disk before the next step depends on it.
    """
    path = os.path.join(folder, "sessions", file_name(session_id))
    with disk_errors(f"repairing session {session_id}"):
        fd = _open_locked(disk, path)
        try:
            read = _reader(disk, fd)
            size = disk.fstat(fd).st_size
            survey = Survey(read, size, without=without)
            cuts = survey.cuts()
            if not cuts:
                return None
            now = clock()
            disk.sync(fd)
            original = _keep(disk, folder, path, now)
            note, line = _note(read, size, survey, cuts, os.path.basename(original), now, without)
            _replace(disk, path, read, size, cuts, line, survey.trace, note)
        finally:
            disk.close(fd)
    return Repaired(sum(cut.end - cut.start for cut in cuts), original, note)


def _reader(disk: Disk, fd: int) -> Read:
    def read(length: int, offset: int) -> bytes:
        return disk.pread(fd, length, offset)

    return read


def _open_locked(disk: Disk, path: str) -> int:
    """A descriptor of the file that has this name now, with the writer's lock."""
    while True:
        fd = disk.open(path, os.O_RDWR)
        try:
            disk.lock(fd)
            if os.path.samestat(disk.fstat(fd), disk.stat(path)):
                return fd
        except FileNotFoundError:
            disk.close(fd)
            raise NotFound(f"{path} was deleted or moved", hint="see `turnlog ls`") from None
        except BaseException:
            disk.close(fd)
            raise
        disk.close(fd)  # somebody replaced it while we waited


def _keep(disk: Disk, folder: str, path: str, now: int) -> str:
    """Give the file a second name in the trash, on the disk when this returns."""
    trash = os.path.join(folder, "trash")
    try:
        disk.mkdir(trash)
        disk.sync_folder(folder)
    except FileExistsError:
        pass
    stamp = to_text(now).replace(":", "").replace("-", "")
    name = os.path.join(trash, f"{os.path.basename(path)}.before-repair-{stamp}")
    try:
        disk.link(path, name)
    except FileExistsError:
        name = f"{name}-{word(4)}"
        disk.link(path, name)
    disk.sync_folder(trash)
    return name


def _note(
    read: Read, size: int, survey: Survey, cuts: list[_Cut], original: str, now: int, without: frozenset[int]
) -> tuple[int, bytes]:
    """The line that says what was done. Its `seq` is above whatever the damaged bytes held."""
    tail = Tail()
    tail.look(read, size, lambda entry_id, seq: None)
    blanked = sum(cut.end - cut.start for cut in cuts)
    gone = [region for region in survey.regions if not region.is_used]
    data: dict[str, Any] = {
        "original": original,
        "blanked_bytes": blanked,
        "regions": [
            {"offset": region.offset, "length": region.length, "kind": region.kind} for region in gone[:_LISTED]
        ],
    }
    if len(gone) > _LISTED:
        data["more_regions"] = len(gone) - _LISTED
    if without:
        data["folds"] = sorted(without)[:_LISTED]
    text = f"repaired: {blanked} damaged bytes were left out; trash/{original} has the file as it was"
    draft, _ = prepare(Note(text=text, data=data))
    floor = max(tail.floor, survey.last)
    ((_, stamps, _),) = number([draft], floor=floor, at=tail.at, now=now, head=0)
    if survey.wide:
        shift = sum(cut.start == cut.end and cut.start <= survey.wide for cut in cuts)
        stamps += f',"wide":{survey.wide + shift}'
    return floor + 1, draft.sealed(stamps)[0]


def _replace(
    disk: Disk, path: str, read: Read, size: int, cuts: list[_Cut], line: bytes, trace: int, note: int
) -> None:
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".new-{word(16)}")
    new = disk.open(temporary, os.O_RDWR, create=True)
    try:
        try:
            for piece in _pieces(read, size, cuts):
                disk.write(new, piece)
            disk.write(new, line)
            _check(disk, new, path, trace, note)
            disk.sync(new)
        finally:
            disk.close(new)
        disk.rename(temporary, path)
    except BaseException:
        _discard(disk, temporary)
        raise
    disk.sync_folder(folder)


def _check(disk: Disk, fd: int, path: str, trace: int, note: int) -> None:
    """Before anything is replaced: the new file has to read as the old one does, without its damage."""
    survey = Survey(_reader(disk, fd), disk.fstat(fd).st_size, without=frozenset([note]))
    if survey.trace != trace or any(not region.is_used for region in survey.regions):
        raise Corrupt(
            f"{os.path.basename(path)} cannot be repaired without changing what is read from it",
            hint="nothing was changed; please report this, with the file if you can",
        )


def _discard(disk: Disk, path: str) -> None:
    try:
        disk.unlink(path)
    except OSError:
        return  # the disk is failing; a leftover that has no session's name harms nobody


def _pieces(read: Read, size: int, cuts: list[_Cut]) -> Iterator[bytes]:
    """The bytes of the repaired log, without its note."""
    position = 0
    for cut in [*cuts, _Cut(size, size)]:
        while position < cut.start:
            piece = read(min(_STEP, cut.start - position), position)
            if not piece:
                raise Corrupt("the log became shorter while it was repaired", hint="nothing was changed; try again")
            position += len(piece)
            yield piece
        yield from _blank(cut)
        position = cut.end


def _blank(cut: _Cut) -> Iterator[bytes]:
    """As many bytes as the cut has, in lines that say nothing; one more where there is no room for a line end."""
    length = cut.end - cut.start
    if length == 0:
        if cut.breaks_before or cut.breaks_after:
            yield b"\n"
        return
    position = 0
    while position < length:
        piece = bytearray(b" " * min(_STEP, length - position))
        if position or cut.breaks_before:
            piece[0] = 10
        position += len(piece)
        if position == length and cut.breaks_after:
            piece[-1] = 10
        yield bytes(piece)
