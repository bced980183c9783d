"""Erasing the content of a line: its length stays the same, and its checksum matches. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.log.codec import (
    Flawed,
    Header,
    Unreadable,
    decode,
    decode_raws,
    is_verified,
    with_checksum,
    without_checksum,
)
from turnlog.log.entry import AnyEntry, Entry
from turnlog.log.erasure.content import Erasure, stripped, void_of, without_part
from turnlog.log.plainjson import flat
from turnlog.log.prompt.promptmessage import is_prompt

_encode = msgspec.json.Encoder().encode
_STAMPS = {*Header.__struct_fields__} - {"type"}


class Eraser:
    """The erasures for one log, applied line by line. One line may repeat content of several erased entries."""

    def __init__(self, erasures: Iterable[Erasure]) -> None:
        self._parts: dict[tuple[str, int], set[str]] = {}
        for one in erasures:
            self._parts.setdefault((one.id, one.seq if one.part else 0), set()).add(one.part)

    def concerns(self, entry: Entry) -> bool:
        """Whether any part of that entry is to be erased."""
        return (entry.id, 0) in self._parts or (entry.id, entry.seq) in self._parts

    def erased(self, line: bytes, entry: Entry) -> bytes:
        """Return the line of that entry without the erased content."""
        for part in self._parts.get((entry.id, entry.seq), ()):
            line = erased_line(line, part)
        return erased_line(line) if (entry.id, 0) in self._parts else line


def erased_line(line: bytes, part: str = "") -> bytes:
    """Return a line without its content, or without a part of it. Blanks before the checksum keep its length.

    Raises `Corrupt` for a line that cannot be read, or has no room to record the erasure.
    """
    entry = _entry(line)
    left = without_part(entry, part) if part else replace(stripped(entry), void=void_of(entry, is_prompt))
    if left == entry:
        return line
    fields: dict[str, Any] = {}
    remaining = flat(left)
    for name, raw in _raws(line).items():
        if name in _STAMPS:
            fields[name] = raw
        elif name in remaining:
            fields[name] = remaining.pop(name)
    for name, value in remaining.items():
        if name not in fields and name not in _STAMPS:
            fields[name] = value
    text = _encode(fields)[:-1]
    room = len(without_checksum(line))
    if len(text) > room:
        raise Corrupt(f"entry {entry.seq} has no room to say that it was erased", hint="purge the session instead")
    return with_checksum(text.ljust(room))


def _entry(line: bytes) -> AnyEntry:
    try:
        item = decode(line)
    except Unreadable as why:
        raise Corrupt(f"a line that cannot be read ({why.kind})", hint="look with `turnlog doctor`") from None
    return item.entry if isinstance(item, Flawed) else item


def _raws(line: bytes) -> dict[str, Raw]:
    text = without_checksum(line) + b"}" if is_verified(line) else line
    try:
        fields = decode_raws(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Corrupt(
            "a line that was edited by hand cannot be read", hint="repair it with `turnlog doctor --repair`"
        ) from None
    fields.pop("c", None)
    fields.pop("unverified", None)
    return fields
