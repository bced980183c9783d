"""An entry with its line, as it is in every copy of its log: what goes from one store to another.

`wide` and `sealed` say where bytes lie in one file, and mean nothing anywhere else. A line without them is bare; two
copies of a log have the same bare lines, to the byte, whatever stores they are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.log.assemble import Line, forward
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
    """An entry and its bare line, without the newline. An edited line is as it is: it stays one in every copy."""

    entry: AnyEntry
    line: bytes


def bare(line: bytes) -> bytes:
    """A line without what only says where bytes lie in its file, and the blanks in place of what was erased."""
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
    """A bare line in its place in a file. One that was edited is left alone."""
    if not (wide or sealed) or not is_verified(line):
        return line
    hints = (b',"sealed":%d' % sealed if sealed else b"") + (b',"wide":%d' % wide if wide else b"")
    return with_checksum(without_checksum(line) + hints)


def written(lines: Iterable[Line]) -> Iterator[WrittenLine | Damage]:
    """Every entry that counts with its bare line, oldest first, and the damage."""
    for item in placed_lines(lines):
        yield item if isinstance(item, Damage) else WrittenLine(item[1], bare(item[2]))


def placed_lines(lines: Iterable[Line]) -> Iterator[tuple[int, AnyEntry, bytes] | Damage]:
    """Every entry that counts with its offset and the bytes of its line, oldest first, and the damage."""
    waiting: dict[int, bytes] = {}

    def noted() -> Iterator[Line]:
        for offset, line in lines:
            waiting[offset] = line
            yield offset, line

    for item in forward(noted()):
        if isinstance(item, Damage):
            yield item
            continue
        offset, entry = item
        start = offset if offset in waiting else max(at for at in waiting if at < offset)
        while (oldest := next(iter(waiting))) < start:
            del waiting[oldest]
        line = waiting[start]
        if not entry.unverified and not is_verified(line):
            # Several are glued together on it.
            line = next(line[at : at + length] for at, length, _ in salvage(line) if start + at == offset)
        yield offset, entry, line


def entries_of(lines: list[bytes], *, after: int) -> list[AnyEntry | Flawed]:
    """What bare lines say that are to follow entry `after`; refuses what cannot be the next lines of a log."""
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
    """The entry, whatever is wrong with its line."""
    return item.entry if isinstance(item, Flawed) else item
