"""Entries to lines and back. A line is one JSON object whose last field, `c`, is the CRC-32 of all before it.

`encode_body` and `seal` give the line of a draft; `decode` gives back the entry, a `Flawed` one where the line
can be used but is not what was written, or raises `Unreadable`: nothing else, whatever the bytes.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import zlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from turnlog.log.block import BLOCKS, AnyBlock, Block, UnknownBlock, encode, flat
from turnlog.log.entry import ENTRIES, AnyEntry, Entry, Message, Ref, Unknown
from turnlog.log.erasure.content import stand_in, stripped
from turnlog.log.field import shape

MAX_LINE = 16 << 20
"""No writer makes a longer line, so no reader needs to hold one."""
CHECKSUM = 16
"""The length of a line's end: `,"c":"…"}`, its checksum."""

decode_raws = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_block = msgspec.json.Decoder(AnyBlock).decode
_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class StrictDecoder:
    """Takes a line without its checksum that has nothing in it but what this version knows.

    To make a decoder of all types takes longer than to read a small log, so the first lines are read with one of their
    own type each.
    """

    def __init__(self, few: int = 200) -> None:
        self._few = few
        self._by_type: dict[bytes, Callable[[bytes], AnyEntry]] = {}

    def decode(self, line: bytes, /) -> AnyEntry:
        """The entry. Raises what msgspec does."""
        self._few -= 1
        if self._few < 0:
            self.decode = msgspec.json.Decoder(AnyEntry).decode  # from now on it is called itself
            return self.decode(line)
        name = line[9 : line.find(b'"', 9)] if line.startswith(b'{"type":"') else b""
        if name not in self._by_type:
            kind: Any = ENTRIES.get(name.decode(errors="replace"), AnyEntry)
            self._by_type[name] = msgspec.json.Decoder(kind).decode
        return self._by_type[name](line)


strict = StrictDecoder()


class Header(Struct, gc=False):
    """The fields of a line that say where it stands, whatever it says."""

    type: str
    seq: int
    id: str
    at: datetime | None = None
    clock: datetime | None = None
    parent: int | None = None
    turn: str | None = None
    more: int = 0
    batch: int = 0
    sealed: int = 0
    again: int = 0
    wide: int = 0
    critical: bool = False


_STAMPS = {*Header.__struct_fields__, "unverified", "c"} - {"turn", "critical"}
UNSTAMPED: dict[str, Any] = {
    name: default
    for name, default in zip(Entry.__struct_fields__, Entry.__struct_defaults__, strict=True)
    if name in _STAMPS and name != "id"
}
"""What an entry has instead before a store has given it its place."""
decode_header = msgspec.json.Decoder(Header).decode


class Damage(Struct, frozen=True):
    """Bytes of a log that are not what was written. Offsets and lengths are in bytes."""

    offset: int
    length: int
    kind: str
    """torn · garbled · nul · spliced · utf8 · surrogate · number · duplicate · deep · oversize · edited ·
    shape · order · unfinished"""
    seq: int | None = None
    """The entry that could be read in spite of it."""


class Flawed(Struct, frozen=True):
    """An entry that can be used although its line is not what was written."""

    entry: AnyEntry
    kind: str


class Unreadable(Exception):
    """This line gives no entry. `kind` says why, in the words of `Damage`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


_STARTS: dict[type[Entry], int] = {cls: 10 + len(tag) for tag, cls in ENTRIES.items()}
"""How long `{"type":"…"` is."""


# ── entries to lines ──────────────────────────────────────────────────────────────────────────────


def encode_body(entry: Entry) -> tuple[bytes, int, bool]:
    """The JSON of a draft, where in it the stamps go (right behind the type), and whether we know all that is in it."""
    if isinstance(entry, Unknown):
        fields = {k: v for k, v in decode_raws(entry.json.encode()).items() if k not in _STAMPS}
        body = encode({"type": entry.kind, "id": entry.id, **fields})
        return body, 8 + len(encode(entry.kind)), False
    if entry.void:
        return encode(stripped(entry)), _STARTS[type(entry)], False
    body = encode(entry)
    if b'"unknown":{' in body or b'"type":"?"' in body:
        return encode(flat(entry)), _STARTS[type(entry)], False
    return body, _STARTS[type(entry)], True


def seal(body: bytes, start: int, stamps: str) -> bytes:
    """The line of a draft, newline included, once the store has given it `seq` and the rest: `stamps`."""
    text = b"%b,%b%b" % (body[:start], stamps.encode(), body[start:-1])
    return b'%b,"c":"%08x"}\n' % (text, zlib.crc32(text))  # as in `with_checksum`, once more: every append


def with_checksum(text: bytes) -> bytes:
    """A line: its text, which lacks the closing brace, and the checksum of that."""
    return b'%b,"c":"%08x"}' % (text, zlib.crc32(text))


def without_checksum(line: bytes) -> bytes:
    """The text of a line, as `with_checksum` takes it."""
    return line[:-CHECKSUM]


def body_text(value: Entry | Block) -> str:
    """The JSON of an entry or block as a log would hold it, without a checksum."""
    if isinstance(value, Unknown):
        return value.json
    return encode(flat(value)).decode()


def plain_fields(entry: Entry) -> dict[str, Any]:
    """The fields of an entry as a log would hold them."""
    return flat(entry)


# ── lines to entries ──────────────────────────────────────────────────────────────────────────────


def is_verified(line: bytes) -> bool:
    """Whether the line ends in a checksum that matches it."""
    return (
        line[-CHECKSUM:-10] == b',"c":"'
        and line[-2:] == b'"}'
        and b"%08x" % zlib.crc32(memoryview(line)[:-CHECKSUM]) == line[-10:-2]
    )


def decode(line: bytes) -> AnyEntry | Flawed:
    """The entry of a line (without its newline)."""
    # As in `is_verified`, once more: this is where reading a log spends its time.
    body = line[:-CHECKSUM]
    if line[-16:-10] == b',"c":"' and line[-2:] == b'"}' and b"%08x" % zlib.crc32(body) == line[-10:-2]:
        try:
            entry = strict.decode(body + b"}")
        except msgspec.ValidationError:
            return _lenient(body + b"}")
        except _BAD_JSON:
            return _flawed(line)
        if entry.void:
            return stand_in(entry)
        return entry if entry.seq > 0 else _lenient(body + b"}")
    return _flawed(line)


def _flawed(line: bytes) -> AnyEntry | Flawed:
    """An entry of a line that is not as our encoder made it: by Python's own parser, which forgives more."""
    import json

    kind = "surrogate" if is_verified(line) else "edited"
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text, kind = line.decode(errors="replace"), "utf8"
    problems: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(items)
        if len(mapping) != len(items):
            problems.append("duplicate")
        return mapping

    def constant(_: str) -> None:
        problems.append("number")

    def number(digits: str) -> float | None:
        value = float(digits)
        if value in (float("inf"), float("-inf")):
            problems.append("number")
            return None
        return value

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)
        if not isinstance(value, dict):
            raise Unreadable("shape")
        fields = cast("dict[str, Any]", value)
        fields.pop("c", None)
        try:
            plain = encode(fields)
        except UnicodeEncodeError:
            problems.append("surrogate")
            plain = encode(without_surrogates(fields))
        entry = _lenient(plain)
    except RecursionError:
        raise Unreadable("deep") from None
    except ValueError:
        raise Unreadable(_why_not_json(line)) from None
    entry = msgspec.structs.replace(entry, unverified=True)
    return Flawed(entry, problems[0] if problems else kind)


def _why_not_json(line: bytes) -> str:
    if b"\0" in line:
        return "nul"
    return "torn" if line.startswith(b'{"type":"') else "garbled"


def without_surrogates(value: Any) -> Any:
    """The same JSON, with every lone surrogate in its text replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {without_surrogates(key): without_surrogates(item) for key, item in items}
    return value


def _lenient(text: bytes) -> AnyEntry:
    """An entry that a later version wrote: what we know is understood, the rest is kept to the letter."""
    try:
        fields = decode_raws(text)
        header = decode_header(text)
    except (msgspec.ValidationError, *_BAD_JSON):
        raise Unreadable("shape") from None
    if header.seq < 1 or header.seq > 1 << 62 or not header.id or header.more < 0:
        raise Unreadable("shape")
    fields.pop("unverified", None)
    cls = ENTRIES.get(header.type)
    if cls is not None:
        try:
            built = cast("AnyEntry", _build(cls, fields))
            return stand_in(built) if built.void else built
        except (msgspec.ValidationError, *_BAD_JSON):
            pass  # a field we know holds what we do not: the whole entry is kept as unknown
    stamps = {name: getattr(header, name) for name in Header.__struct_fields__ if name != "type"}
    try:
        blobs = _decode_names(fields.get("blobs", Raw(b"[]")))
    except (msgspec.ValidationError, *_BAD_JSON):
        blobs: list[str] = []
    return Unknown(kind=header.type, json=text.decode(), blobs=blobs, **stamps)


def _build(cls: type[Entry] | type[Block], fields: dict[str, Raw]) -> Any:
    declared = set(cls.__struct_fields__) - {"unknown"}
    own = {name: raw for name, raw in fields.items() if name in declared or name == "type"}
    unknown = {name: raw.copy() for name, raw in fields.items() if name not in own}
    parts: dict[str, Any] = {}
    for name in shape(cls).parts:
        if name in own and bytes(own[name])[:1] == b"[":
            parts[name] = [_part(raw) for raw in _decode_list(own[name])]
            own[name] = Raw(b"[]")
    built = msgspec.json.decode(encode(own), type=cls)
    if unknown:
        parts["unknown"] = unknown
    return msgspec.structs.replace(built, **parts) if parts else built


def decode_body(data: bytes, line: Entry) -> AnyEntry:
    """The entry whose whole body lies in a blob, with the stamps of the line that refers to it."""
    try:
        fields = decode_raws(data)
        whole = _build(type(line), fields)
    except (msgspec.ValidationError, *_BAD_JSON):
        raise Unreadable("shape") from None
    stamps = {name: getattr(line, name) for name in Header.__struct_fields__ if name != "type"}
    return msgspec.structs.replace(whole, unverified=line.unverified, blobs=line.blobs, **stamps)


def decode_block(data: bytes) -> AnyBlock:
    """A block, whatever a later version put into it."""
    return _part(Raw(data))


def _part(raw: Raw) -> Any:
    """A block, or a message or reference in a compaction's replacement."""
    fields = decode_raws(raw)
    kind = msgspec.json.decode(fields.get("type", Raw(b'""')))
    if kind == "message":
        return _build(Message, fields)
    if kind == "ref":
        return msgspec.json.decode(raw, type=Ref)
    try:
        return _decode_block(raw)
    except msgspec.ValidationError:
        if isinstance(kind, str) and kind in BLOCKS:
            try:
                return _build(BLOCKS[kind], fields)
            except msgspec.ValidationError:
                pass  # kept as unknown, below
        return UnknownBlock(kind=str(kind), json=bytes(raw).decode())


def salvage(line: bytes) -> list[tuple[int, int, AnyEntry]]:
    """Verified entries glued together or behind a torn one on one line: (start, length, entry) each.

    JSON nested in a caller's data is never taken for an entry. Only a stretch that ends where a record can end
    counts (in whole JSON `}{` cannot occur, and the last stretch has to end the line), and only if it begins where
    no value could begin in what is before it.
    """
    entries: list[tuple[int, int, AnyEntry]] = []
    start = 0
    while start < len(line):
        cut = line.find(b'}{"type":"', start)
        end = len(line) if cut < 0 else cut + 1
        budget = 4 * MAX_LINE
        at = start
        while at >= 0 and budget > 0:
            piece = line[at:end]
            budget -= len(piece)
            if is_verified(piece) and not _takes_a_value(line[start:at]):
                try:
                    entry = decode(piece)
                except Unreadable:
                    break
                if not isinstance(entry, Flawed):
                    entries.append((at, len(piece), entry))
                break
            at = line.find(b'{"type":"', at + 1, end)
        start = end
    return entries


_STRING = rb'"(?:[^"\\]|\\.)*"'


def _takes_a_value(torn: bytes) -> bool:
    """Whether a value could come next in this beginning of a JSON text."""
    import re

    rest = re.sub(_STRING, b"0", torn, flags=re.DOTALL)
    if b'"' in rest:
        return False  # it ends inside a string
    if rest[-1:] != b",":
        return rest[-1:] in (b":", b"[")
    closed = 0
    for character in reversed(rest):
        if character in b"]}":
            closed += 1
        elif character in b"[{":
            if not closed:
                return character == 91
            closed -= 1
    return False
