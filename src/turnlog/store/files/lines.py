"""Raw bytes and lines of a file in both directions, and the offset of a `seq`. Memory stays bounded in any file."""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from turnlog.errors import Corrupt
from turnlog.log.assemble import Line, Oversize
from turnlog.log.codec import MAX_LINE, Header, decode_header, is_verified
from turnlog.store.files.disk import Disk

Read = Callable[[int, int], bytes]
"""`read(length, offset)` returns bytes of the file, fewer than `length` only at its end."""

_PROBE = 12 << 10
"""The bytes to read when only a few lines are wanted."""
_FIRST_STEP = 64 << 10
STEP = 1 << 20
"""The most bytes that are read or written at once."""
_LONGEST = MAX_LINE + 1024


def reader_of(disk: Disk, fd: int) -> Read:
    """Return a function that reads an open file."""

    def read(length: int, offset: int) -> bytes:
        return disk.pread(fd, length, offset)

    return read


def pieces(read: Read, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `end`. Raises `Corrupt` if the file is shorter."""
    position = start
    while position < end:
        piece = read(min(STEP, end - position), position)
        if not piece:
            raise Corrupt("the log became shorter while it was rewritten", hint="nothing was changed; try again")
        position += len(piece)
        yield piece


def _oversize(start: bytes, length: int) -> Oversize:
    line = Oversize(start[:256])
    line.length = length
    return line


def lines(read: Read, start: int, end: int, *, step: int = _FIRST_STEP) -> Iterator[Line]:
    """Yield the terminated lines that begin in `start … end`, oldest first. `step` is the size of the first read."""
    offset, rest, position = start, b"", start
    while position < end:
        chunk = read(min(step, end - position), position)
        if not chunk:
            return
        position += len(chunk)
        step = min(4 * step, STEP)
        parts = (rest + chunk).split(b"\n")
        rest = parts.pop()
        for part in parts:
            yield offset, part
            offset += len(part) + 1
        if len(rest) > _LONGEST:
            length, position = _skip(read, len(rest), position, end)
            if position > end:
                return  # too long, and not terminated either: an unfinished tail
            yield offset, _oversize(rest, length)
            offset, rest = position, b""


def _skip(read: Read, length: int, position: int, end: int) -> tuple[int, int]:
    """Return the full length of a line of which `length` bytes were read, and the offset of the next line."""
    while position < end:
        chunk = read(min(STEP, end - position), position)
        newline = chunk.find(b"\n")
        if newline >= 0:
            return length + newline, position + newline + 1
        if not chunk:
            break
        length += len(chunk)
        position += len(chunk)
    return length, end + 1


def lines_back(read: Read, end: int, start: int = 0) -> Iterator[Line]:
    """Yield the terminated lines in `start … end`, newest first. Both offsets are just after a newline."""
    position, rest, step = end - 1, b"", _FIRST_STEP
    while position > start:
        size = min(step, position - start)
        position -= size
        step = min(step * 2, STEP)
        text = read(size, position) + rest
        parts = text.split(b"\n")
        offset = position + len(text)
        for index in range(len(parts) - 1, 0, -1):
            part = parts[index]
            offset -= len(part)
            yield offset, part
            offset -= 1
        rest = parts[0]
        if len(rest) > _LONGEST:
            offset = _skip_back(read, position, start)
            yield offset, _oversize(rest, position + len(rest) - offset)
            if offset <= start:
                return
            position, rest = offset - 1, b""
    if end > start:
        yield start, rest


def _skip_back(read: Read, position: int, start: int) -> int:
    """Return the offset of the line that begins before `position`."""
    while position > start:
        size = min(STEP, position - start)
        newline = read(size, position - size).rfind(b"\n")
        if newline >= 0:
            return position - size + newline + 1
        position -= size
    return start


def last_newline(read: Read, end: int) -> int:
    """Return the offset just after the last newline before `end`: the end of the terminated lines."""
    position = end
    while position > 0:
        size = min(_FIRST_STEP if position == end else STEP, position)
        newline = read(size, position - size).rfind(b"\n")
        if newline >= 0:
            return position - size + newline + 1
        position -= size
    return 0


class _Start(Struct):
    type: str
    id: str
    session: str | None = None


_start = msgspec.json.Decoder(_Start).decode


def session_in(line: bytes) -> str | None:
    """Return the session id in a first line; None if it cannot be read."""
    try:
        start = _start(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (start.session or start.id) if start.type == "session" else None


def header_of(line: bytes) -> Header | None:
    """Return the header of a line; None if it cannot be read."""
    try:
        header = decode_header(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return header if header.seq > 0 else None


def _true_header(line: bytes) -> Header | None:
    """Return the header of a verified line; None for an edited one, whose `seq` may be wrong."""
    return header_of(line) if is_verified(line) else None


def begin_of(read: Read, seq: int, end: int) -> int:
    """Return the offset from which to read forwards without missing an entry from `seq` on, or a line of its batch."""
    start, header = _begin_of(read, seq, end)
    if header is not None and header.batch:
        start, _ = _begin_of(read, min(seq, header.seq + header.more - header.batch + 1), end)
    return start


def end_of(read: Read, seq: int, end: int) -> int:
    """Return the offset from which to read backwards without missing an entry up to `seq`, or a line of its batch."""
    stop, header = _end_of(read, seq, end)
    if header is not None and header.batch:
        stop, _ = _end_of(read, max(seq, header.seq + header.more), end)
    return stop


def _begin_of(read: Read, seq: int, end: int) -> tuple[int, Header | None]:
    """Return the offset just after the last line below `seq`, and the header of the line after it."""
    start = _near(read, seq, end)
    for offset, line in lines(read, start, end):
        header = _true_header(line)
        if header is not None:
            if header.seq >= seq:
                return start, header
            start = offset + len(line) + 1
    return start, None


def _end_of(read: Read, seq: int, end: int) -> tuple[int, Header | None]:
    """Return the offset just after the first line from `seq` on. The next line must confirm it (order)."""
    last: tuple[int, Header] | None = None
    for offset, line in lines(read, _near(read, seq, end), end):
        header = _true_header(line)
        if header is None:
            continue
        if header.seq < seq:
            last = None
        elif last is None:
            last = offset + len(line) + 1, header
        else:
            return last
    return last or (end, None)


def _near(read: Read, seq: int, end: int) -> int:
    """Return the offset of a line before `seq`, and not far before it.

    `seq` only grows along a file, so this is a binary search. Of three adjacent lines, the median is used, so that a
    single line that is out of order does no harm.
    """
    low, high = 0, end
    while high - low > _FIRST_STEP:
        middle = (low + high) // 2
        headers = _headers(read, middle, high)
        if len(headers) == 3 and sorted(header.seq for _, header in headers)[1] < seq:
            low = headers[0][0]
        else:
            high = middle
    return low


def _headers(read: Read, position: int, end: int) -> list[tuple[int, Header]]:
    """Return the headers of the first three readable lines that begin after `position`."""
    headers: list[tuple[int, Header]] = []
    while position < end:
        chunk = read(min(_PROBE, end - position), position)
        newline = chunk.find(b"\n")
        if newline >= 0:
            for offset, line in lines(read, position + newline + 1, end, step=_PROBE):
                header = _true_header(line)
                if header is not None:
                    headers.append((offset, header))
                    if len(headers) == 3:
                        break
            break
        if not chunk:
            break  # the file became shorter
        position += len(chunk)
    return headers
