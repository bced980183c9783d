"""Rewriting one log file without erased content: every line keeps its offset and its length."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from turnlog.errors import Corrupt
from turnlog.log.codec import Damage, Unreadable, decode
from turnlog.log.erasure.content import Erasure
from turnlog.log.erasure.line import Eraser
from turnlog.log.written import entry_of, placed_lines
from turnlog.store.files.disk import Disk, open_locked
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.lines import Read, last_newline, lines, pieces, reader_of
from turnlog.store.files.tail import is_adoptable

Changes = list[tuple[int, bytes]]
"""Offsets in a file, ascending, and the bytes that replace as many bytes there. None overlaps another."""


def rehearse(disk: Disk, path: str, erasures: list[Erasure]) -> None:
    """Raise `Corrupt` if `rewrite` would: before the intent is written, nothing has to be completed."""
    held = open_locked(disk, path)
    if held is None:
        return  # it was purged meanwhile
    with held:
        read, size = reader_of(disk, held.fileno()), disk.fstat(held.fileno()).st_size
        if changes := _changes(read, size, erasures):
            _compare(path, read, size, _changed_reader(read, changes), size)


def rewrite(home: HomeFolder, path: str, erasures: list[Erasure]) -> None:
    """Under the writer's lock: replace a file with one that lacks the erased content."""
    disk = home.disk
    held = open_locked(disk, path)
    if held is None:
        return  # it was purged meanwhile
    with held:
        read, size = reader_of(disk, held.fileno()), disk.fstat(held.fileno()).st_size
        changes = _changes(read, size, erasures)
        if not changes:
            return
        temporary, fd = home.begin_file(os.path.basename(os.path.dirname(path)))
        try:
            for piece in pieces(_changed_reader(read, changes), 0, size):
                disk.write(fd, piece)
            _compare(path, read, size, reader_of(disk, fd), disk.fstat(fd).st_size)
            disk.sync(fd)
            disk.rename(temporary, path)
        except BaseException:
            disk.discard(temporary)
            raise
        finally:
            disk.close(fd)
        disk.sync_folder(os.path.dirname(path))


def _changes(read: Read, size: int, erasures: list[Erasure]) -> Changes:
    """Return the changes: every line of these entries, and the remains of writes that were abandoned."""
    eraser = Eraser(erasures)
    end = last_newline(read, size)
    changes: dict[int, bytes] = {}
    counted: list[tuple[int, int]] = []
    given_up: list[tuple[int, int]] = []
    for item in placed_lines(lines(read, 0, end)):
        if isinstance(item, Damage):
            if item.kind == "unfinished":
                given_up.append((item.offset, item.length))
            elif item.kind == "order":
                changes.update(_changed(item.offset, read(item.length, item.offset), eraser))
            continue
        offset, entry, line = item
        counted.append((offset, offset + len(line)))
        if 0 < entry.sealed <= offset:
            given_up.append((offset - entry.sealed, entry.sealed))
        if eraser.concerns(entry):
            changes.update(_changed(offset, line, eraser))
    if end < size:
        if is_adoptable(read, size):
            changes.update(_changed(end, read(size - end, end), eraser))
        else:
            given_up.append((end, size - end))
    counted.sort()
    for offset, length in given_up:  # one write may be listed twice: as unfinished, and by the line that sealed it
        changes.update(_blanks(offset, read(length, offset), counted))
    return _disjoint(changes)


def _disjoint(changes: dict[int, bytes]) -> Changes:
    """Return the changes in order, without those of bytes that an earlier one changes."""
    disjoint: Changes = []
    position = 0
    for offset, data in sorted(changes.items()):
        if offset >= position:
            disjoint.append((offset, data))
            position = offset + len(data)
    return disjoint


def _changed(offset: int, line: bytes, eraser: Eraser) -> Changes:
    try:
        entry = entry_of(decode(line))
    except Unreadable:
        return []
    left = eraser.erased(line, entry)
    return [(offset, left)] if left != line else []


def _blanks(offset: int, data: bytes, counted: list[tuple[int, int]]) -> Changes:
    """Blank out abandoned lines: they were never acknowledged, and may repeat erased content."""
    blanks: Changes = []
    for line in data.split(b"\n"):
        end = offset + len(line)
        before = bisect_left(counted, (end,))
        if line.strip() and not (before and counted[before - 1][1] > offset):
            blanks.append((offset, b" " * len(line)))
        offset = end + 1
    return blanks


def _changed_reader(read: Read, changes: Changes) -> Read:
    """Return a function that reads a file as it is with the changes."""
    offsets = [offset for offset, _ in changes]

    def read_changed(length: int, offset: int) -> bytes:
        data = bytearray(read(length, offset))
        first, last = bisect_right(offsets, offset) - 1, bisect_left(offsets, offset + len(data))
        for at, new in changes[max(0, first) : last]:
            start, end = max(at, offset), min(at + len(new), offset + len(data))
            if start < end:
                data[start - offset : end - offset] = new[start - at : end - at]
        return bytes(data)

    return read_changed


def _compare(path: str, read: Read, size: int, new: Read, new_size: int) -> None:
    """Check, before a file is replaced, that everything that could be read can still be read, at the same offset."""
    if size != new_size or _trace(read, size) != _trace(new, new_size):
        raise Corrupt(
            f"{os.path.basename(path)} cannot be written anew without losing what can be read",
            hint="nothing was changed; look with `turnlog doctor`",
        )


def _trace(read: Read, size: int) -> list[tuple[int, int, str]]:
    items = placed_lines(lines(read, 0, last_newline(read, size)))
    return [(item[0], item[1].seq, item[1].id) for item in items if not isinstance(item, Damage)]
