"""The data of a log for listings, from its first line, its last, and one in between."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.log.codec import Damage, Flawed, Unreadable, decode
from turnlog.log.entry import AnyEntry, Set, Start, is_wide
from turnlog.store import Listed
from turnlog.store.files.disk import Disk
from turnlog.store.files.names import session_id_of

_FRONT = 4 << 10
"""The bytes to read at the beginning of a log: nearly always more than its first line."""
_BACK = 16 << 10
"""The bytes to read at the end of a log: nearly always more than its last line."""


def glimpse(disk: Disk, folder: str, name: str) -> Listed | None:
    """Return a session as listings show it; None if the file was removed meanwhile."""
    try:
        fd = disk.open(os.path.join(folder, name), os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError:
        return Listed(session_id_of(name) or name, None, None, None, 0)  # listed, although it is not readable
    try:
        size = disk.fstat(fd).st_size
        front = disk.pread(fd, _FRONT, 0)
        start = _entry(_line(disk, fd, 0, front, size))
        if not isinstance(start, Start):
            start = None
        back = front if size <= _FRONT else disk.pread(fd, min(_BACK, size), max(0, size - _BACK))
        last = _last(disk, fd, back, size)
        wide = None
        if last is not None and is_wide(last):
            wide = last
        elif last is not None and (last.wide or last.unverified):
            wide = _wide(disk, fd, 0 if last.unverified else last.wide, back, size)
    finally:
        disk.close(fd)
    session_id = start.session_id if start is not None else session_id_of(name) or name
    return Listed(session_id, start, wide, last, size)


def first_id(disk: Disk, path: str) -> str | None:
    """Return the id of the first entry of a log; None if that line cannot be read."""
    try:
        fd = disk.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return first_id_in(disk, fd)
    finally:
        disk.close(fd)


def first_id_in(disk: Disk, fd: int) -> str | None:
    """Return the id of the first entry of an open log; None if that line cannot be read."""
    start = _entry(_line(disk, fd, 0, disk.pread(fd, _FRONT, 0), disk.fstat(fd).st_size))
    return start.id if isinstance(start, Start) else None


def _line(disk: Disk, fd: int, offset: int, window: bytes, size: int) -> bytes:
    """Return the line that begins where the window does. Its end is searched in the window first."""
    end = window.find(b"\n")
    step = _BACK
    while end < 0 and len(window) < size - offset and len(window) < 2 << 20:
        window = disk.pread(fd, step, offset)
        end = window.find(b"\n")
        step *= 4
    return window[:end] if end >= 0 else b""


def _entry(line: bytes) -> AnyEntry | None:
    try:
        item = decode(line)
    except Unreadable:
        return None
    return item.entry if isinstance(item, Flawed) else item


def _last(disk: Disk, fd: int, window: bytes, size: int) -> AnyEntry | None:
    """Return the last entry that counts: nearly always, it is on the last line."""
    end = window.rfind(b"\n")
    begin = window.rfind(b"\n", 0, max(0, end))
    if end > 0 and (begin >= 0 or len(window) >= size):
        try:
            item = decode(window[begin + 1 : end])
        except Unreadable:
            item = None
        if item is not None and not isinstance(item, Flawed) and not item.more:
            return item
    return next(_newest_first(disk, fd, size), None)


def _newest_first(disk: Disk, fd: int, size: int) -> Iterator[AnyEntry]:
    from turnlog.log.assemble import backward
    from turnlog.store.files.lines import last_newline, lines_back, reader_of

    read = reader_of(disk, fd)
    for item in backward(lines_back(read, last_newline(read, size))):
        if not isinstance(item, Damage):
            yield item[1]


def _wide(disk: Disk, fd: int, offset: int, back: bytes, size: int) -> Set | None:
    """Return the newest session-wide facts, at the offset that the last line names; if that fails, search for them."""
    if 0 < offset < size:
        inside = offset - (size - len(back))
        window = back[inside:] if inside >= 0 else disk.pread(fd, _FRONT, offset)
        entry = _entry(_line(disk, fd, offset, window, size))
        if isinstance(entry, Set) and entry.all is not None:
            return entry
    facts = (e for e in _newest_first(disk, fd, size) if isinstance(e, Set) and e.all is not None)
    return next(facts, None)
