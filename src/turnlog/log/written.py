"""Entries with their lines, which are the same in every copy of a log: for transfers between stores.

`wide` and `sealed` are offsets in one file, and have no meaning elsewhere. A line without them is bare. Two copies of a
log have identical bare lines, whatever stores they are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.log.assemble import Line, Oversize, forward
from turnlog.log.codec import (
    CHECKSUM,
    MAX_LINE,
    Damage,
    Flawed,
    Unreadable,
    decode,
    decode_raws,
    is_verified,
    salvage,
    with_checksum,
    without_checksum,
)
from turnlog.log.entry import AnyEntry

_HINTS = ("wide", "sealed")
_encode = msgspec.json.Encoder().encode


class WrittenLine(Struct, frozen=True, gc=False):
    """An entry and its bare line, without the newline. An edited line is copied unchanged."""

    entry: AnyEntry
    line: bytes


def bare(line: bytes) -> bytes:
    """Return a line without offsets in its file, and without the blanks in place of erased content."""
    if line[-CHECKSUM - 1 : -CHECKSUM] == b" " and is_verified(line):
        line = with_checksum(without_checksum(line).rstrip(b" "))
    if b'"wide"' not in line and b'"sealed"' not in line:
        return line
    if not is_verified(line):
        return line
    try:
        fields = decode_raws(without_checksum(line) + b"}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line
    if not any(name in fields for name in _HINTS):
        return line
    return with_checksum(_encode({name: value for name, value in fields.items() if name not in _HINTS})[:-1])


def with_hints(line: bytes, *, wide: int = 0, sealed: int = 0) -> bytes:
    """Return a bare line with the offsets for its place in a file. An edited line is returned unchanged."""
    if not (wide or sealed) or not is_verified(line):
        return line
    hints = (b',"sealed":%d' % sealed if sealed else b"") + (b',"wide":%d' % wide if wide else b"")
    return with_checksum(without_checksum(line) + hints)


def written(lines: Iterable[Line]) -> Iterator[WrittenLine | Damage]:
    """Yield every entry that counts with its bare line, oldest first, and the damage."""
    for item in placed_lines(lines):
        yield item if isinstance(item, Damage) else WrittenLine(item[1], bare(item[2]))


def placed_lines(lines: Iterable[Line]) -> Iterator[tuple[int, AnyEntry, bytes] | Damage]:
    """Yield every entry that counts with its offset and the bytes of its line, oldest first, and the damage."""
    waiting: dict[int, bytes] = {}
    """The lines with entries that may come, by their offsets. Other lines are not held: there may be many in a row."""
    shared_at, lengths = -1, dict[int, int]()
    """The line that is shared by several entries: its offset, and the length of each entry by the entry's offset."""

    def noted() -> Iterator[Line]:
        for offset, line in lines:
            if is_verified(line) or _holds_entry(line):
                waiting[offset] = line
            yield offset, line

    for item in forward(noted()):
        if isinstance(item, Damage):
            if item.kind in ("order", "unfinished") and len(waiting.get(item.offset, b"")) == item.length:
                del waiting[item.offset]
            yield item
            continue
        offset, entry = item
        start = offset if offset in waiting else max(at for at in waiting if at < offset)
        while (oldest := next(iter(waiting))) < start:
            del waiting[oldest]
        line = waiting[start]
        if shared_at != start and not entry.unverified and not is_verified(line):
            shared_at, lengths = start, {start + at: length for at, length, _ in salvage(line)}
        if shared_at == start:
            line = line[offset - start : offset - start + lengths[offset]]
        yield offset, entry, line


def _holds_entry(line: bytes) -> bool:
    """Whether a line that is not intact gives an entry."""
    if isinstance(line, Oversize):
        return False
    try:
        decode(line)
    except Unreadable:
        return bool(salvage(line))
    return True


def entries_of(lines: list[bytes], *, after: int) -> list[AnyEntry | Flawed]:
    """Decode bare lines that are to follow entry `after`. Refuses lines that cannot come next in a log."""
    entries: list[AnyEntry | Flawed] = []
    for line in lines:
        try:
            if len(line) > MAX_LINE or b"\n" in line:
                raise Unreadable("oversize" if len(line) > MAX_LINE else "garbled")
            item = decode(line)
        except Unreadable as why:
            raise Invalid(f"a line that gives no entry ({why.kind}) cannot be taken over") from None
        seq = entry_of(item).seq
        if seq <= after:
            raise Invalid(f"entry {seq} cannot follow entry {after}")
        after = seq
        entries.append(item)
    if not entries:
        raise Invalid("no lines to take over")
    return entries


def entry_of(item: AnyEntry | Flawed) -> AnyEntry:
    """Return the entry, whether or not its line is flawed."""
    return item.entry if isinstance(item, Flawed) else item
