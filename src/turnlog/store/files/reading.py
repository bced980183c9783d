"""Reading a part of a log, in both directions, as a stream of entries and damage."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.log.assemble import backward, forward
from turnlog.log.codec import Damage
from turnlog.log.entry import AnyEntry
from turnlog.log.written import WrittenLine, written
from turnlog.store.files.lines import Read, begin_of, end_of, last_newline, lines, lines_back, pieces

_NEVER = 1 << 63


def oldest_first(read: Read, size: int, *, after: int, before: int) -> Iterator[AnyEntry | Damage]:
    """Yield entries with `after < seq < before`. A batch that begins before that is read from its beginning."""
    end = last_newline(read, size)
    start = begin_of(read, after + 1, end) if after else 0
    for item in forward(lines(read, start, end)):
        if isinstance(item, Damage):
            yield item
            continue
        entry = item[1]
        if entry.seq >= before:
            return
        if entry.seq > after:
            yield entry
    if size > end:
        yield Damage(end, size - end, "torn")


def newest_first(read: Read, size: int, *, after: int, before: int) -> Iterator[AnyEntry | Damage]:
    """Yield the same entries backwards. Reads one more line at the end, which decides whether those before it count."""
    end = last_newline(read, size)
    stop = end_of(read, before, end) if before < _NEVER else end
    for item in backward(lines_back(read, stop), before=before, at_end=stop >= end):
        if isinstance(item, Damage):
            yield item
        elif item[1].seq > after:
            yield item[1]
        else:
            return


def written_after(read: Read, size: int, after: int) -> Iterator[WrittenLine | Damage]:
    """Yield entries after `after` with their bare lines, oldest first."""
    end = last_newline(read, size)
    start = begin_of(read, after + 1, end) if after else 0
    for item in written(lines(read, start, end)):
        if isinstance(item, Damage) or item.entry.seq > after:
            yield item
    if size > end:
        yield Damage(end, size - end, "torn")


def prefix(read: Read, size: int, seq: int) -> Iterator[bytes]:
    """Return the bytes of the log up to that entry, with the rest of its batch, in pieces."""
    end = end_of(read, seq, last_newline(read, size))
    return pieces(read, 0, end)
