"""Raw lines of a file, both ways, and the place of a `seq` in it. Memory stays bounded whatever the file holds."""

# Without `from __future__ import annotations`, as in `log/entry.py`.

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from turnlog.log.assemble import Line, Oversize
from turnlog.log.codec import MAX_LINE, Header, decode_header, is_verified

Read = Callable[[int, int], bytes]
"""`read(length, offset)`: some of the file, fewer bytes only at its end."""

_PROBE = 12 << 10
"""Enough for a few lines, when only those are wanted."""
_FIRST_STEP = 64 << 10
_STEP = 1 << 20
_LONGEST = MAX_LINE + 1024


def _oversize(start: bytes, length: int) -> Oversize:
    line = Oversize(start[:256])
    line.length = length
    return line


def lines(read: Read, start: int, end: int, *, step: int = _FIRST_STEP) -> Iterator[Line]:
    """The terminated lines that begin in `start … end`, oldest first. `step` is how much is read at first."""
    offset, rest, position = start, b"", start
    while position < end:
        chunk = read(min(step, end - position), position)
        if not chunk:
            return
        position += len(chunk)
        step = min(4 * step, _STEP)
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
    """The whole length of a line of which `length` bytes were read, and where the next one begins."""
    while position < end:
        chunk = read(min(_STEP, end - position), position)
        newline = chunk.find(b"\n")
        if newline >= 0:
            return length + newline, position + newline + 1
        if not chunk:
            break
        length += len(chunk)
        position += len(chunk)
    return length, end + 1


def lines_back(read: Read, end: int, start: int = 0) -> Iterator[Line]:
    """The terminated lines in `start … end`, newest first. `end` is just behind a newline, `start` too."""
    position, rest, step = end - 1, b"", _FIRST_STEP
    while position > start:
        size = min(step, position - start)
        position -= size
        step = min(step * 2, _STEP)
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
    """Where the line begins that reaches back before `position`."""
    while position > start:
        size = min(_STEP, position - start)
        newline = read(size, position - size).rfind(b"\n")
        if newline >= 0:
            return position - size + newline + 1
        position -= size
    return start


def last_newline(read: Read, end: int) -> int:
    """Just behind the last newline before `end`: where the terminated lines stop."""
    position = end
    while position > 0:
        size = min(_FIRST_STEP if position == end else _STEP, position)
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
    """The session that a first line says it begins; None if it does not say."""
    try:
        start = _start(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return (start.session or start.id) if start.type == "session" else None


def header_of(line: bytes) -> Header | None:
    """Where a line stands, if that can be read."""
    try:
        header = decode_header(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return header if header.seq > 0 else None


def _true_header(line: bytes) -> Header | None:
    """The same, of a line that is what was written: what somebody edited must not lead us astray."""
    return header_of(line) if is_verified(line) else None


def begin_of(read: Read, seq: int, end: int) -> int:
    """Where to begin reading forwards, so that no entry from `seq` on is missed, nor a line of its batch."""
    start, header = _begin_of(read, seq, end)
    if header is not None and header.batch:
        start, _ = _begin_of(read, min(seq, header.seq + header.more - header.batch + 1), end)
    return start


def end_of(read: Read, seq: int, end: int) -> int:
    """Where to begin reading backwards, so that no entry up to `seq` is missed, nor a line of its batch."""
    stop, header = _end_of(read, seq, end)
    if header is not None and header.batch:
        stop, _ = _end_of(read, max(seq, header.seq + header.more), end)
    return stop


def _begin_of(read: Read, seq: int, end: int) -> tuple[int, Header | None]:
    """Just behind the last line below `seq`, and the first line that is not."""
    start = _near(read, seq, end)
    for offset, line in lines(read, start, end):
        header = _true_header(line)
        if header is not None:
            if header.seq >= seq:
                return start, header
            start = offset + len(line) + 1
    return start, None


def _end_of(read: Read, seq: int, end: int) -> tuple[int, Header | None]:
    """Just behind the first line from `seq` on. The line after it has to agree: a line may be in the wrong place."""
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
    """A line before `seq`, and not too far before.

    `seq` only grows along a file, so this halves the file until one stretch is left. Of three lines next to each
    other the one in the middle is believed: a single line in the wrong place does not lead astray.
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
    """The first three readable lines that begin after `position`."""
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
        position += len(chunk) or end
    return headers
