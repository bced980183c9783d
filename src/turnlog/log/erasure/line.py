"""A line without the content of its entry: as long as it was, with a checksum that holds. Pure."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.log.asked import is_prompt
from turnlog.log.codec import Flawed, Header, Unreadable, decode, is_verified, plain_fields
from turnlog.log.entry import AnyEntry
from turnlog.log.erasure.content import stripped, void_of, without_part

_decode_raws = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode
_STAMPS = {*Header.__struct_fields__} - {"type"}


def erased_line(line: bytes, part: str = "") -> bytes:
    """The same line without its content, or without a part of it. Blanks before the checksum keep its length.

    Raises `Corrupt` for a line that cannot be read as it was written, or has no room to say so.
    """
    entry = _entry(line)
    left = without_part(entry, part) if part else replace(stripped(entry), void=void_of(entry, is_prompt))
    if left == entry:
        return line
    fields: dict[str, Any] = {}
    remaining = plain_fields(left)
    for name, raw in _raws(line).items():
        if name in _STAMPS:
            fields[name] = raw
        elif name in remaining:
            fields[name] = remaining.pop(name)
    for name, value in remaining.items():
        if name not in fields and name not in _STAMPS:
            fields[name] = value
    text = _encode(fields)[:-1]
    if len(text) > len(line) - 16:
        raise Corrupt(f"entry {entry.seq} has no room to say that it was erased", hint="purge the session instead")
    text = text.ljust(len(line) - 16)
    return b'%b,"c":"%08x"}' % (text, zlib.crc32(text))


def is_erased(line: bytes, part: str = "") -> bool:
    """Whether nothing is left to be erased there."""
    return bool(_entry(line).void) if not part else erased_line(line, part) == line


def _entry(line: bytes) -> AnyEntry:
    try:
        item = decode(line)
    except Unreadable as why:
        raise Corrupt(f"a line that cannot be read ({why.kind})", hint="look with `turnlog doctor`") from None
    return item.entry if isinstance(item, Flawed) else item


def _raws(line: bytes) -> dict[str, Raw]:
    text = line[:-16] + b"}" if is_verified(line) else line
    try:
        fields = _decode_raws(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Corrupt(
            "a line that somebody edited cannot be read", hint="repair it with `turnlog doctor --repair`"
        ) from None
    fields.pop("c", None)
    fields.pop("unverified", None)
    return fields
