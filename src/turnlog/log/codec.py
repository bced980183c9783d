"""Encode entries as lines, and decode them. A line is a JSON object; its last field, `c`, is the CRC-32 of the rest.

`encode_body` and `seal` make the line of a draft. `decode` returns the entry, or a `Flawed` one if the line is usable
but not what was written. It raises nothing but `Unreadable`, whatever the bytes.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import zlib
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Raw, Struct

from turnlog.log.block import BLOCKS, AnyBlock, Block, UnknownBlock
from turnlog.log.entry import ENTRIES, AnyEntry, Entry, Message, Ref, Unknown
from turnlog.log.erasure.content import stand_in, stripped
from turnlog.log.field import in_utc, shape
from turnlog.log.plainjson import encode, flat

MAX_LINE = 16 << 20
"""The longest line that a writer makes and a reader holds, in bytes."""
CHECKSUM = 16
"""The length of the checksum at the end of a line: `,"c":"…"}`."""

decode_raws = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_time = msgspec.json.Decoder(datetime | None).decode
_decode_block = msgspec.json.Decoder(AnyBlock).decode
BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not what was asked for, in JSON as in MessagePack."""


class StrictDecoder:
    """Decodes a line without its checksum if this version knows every field in it.

    Building a decoder for all types takes longer than reading a small log, so the first lines are read with
    decoders for one type each.
    """

    def __init__(self, few: int = 200) -> None:
        self._few = few
        self._by_type: dict[bytes, Callable[[bytes], AnyEntry]] = {}

    def decode(self, line: bytes, /) -> AnyEntry:
        """Return the entry. Raises msgspec's errors."""
        self._few -= 1
        if self._few < 0:
            self.decode = msgspec.json.Decoder(AnyEntry).decode  # from now on, that is called directly
            return self.decode(line)
        name = line[9 : line.find(b'"', 9)] if line.startswith(b'{"type":"') else b""
        if name not in self._by_type:
            kind: Any = ENTRIES.get(name.decode(errors="replace"), AnyEntry)
            self._by_type[name] = msgspec.json.Decoder(kind).decode
        return self._by_type[name](line)


strict = StrictDecoder()


class Header(Struct, gc=False):
    """The fields that place a line in its log, whatever the kind of entry."""

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


STAMPS = {*Header.__struct_fields__, "unverified", "c"} - {"turn", "critical"}
"""The fields of a line that are not the caller's."""
_TIMES = ("at", "clock")
"""The stamps that are times. They are in UTC, even where an edited line lacks the `Z`."""
decode_header = msgspec.json.Decoder(Header).decode


class Damage(Struct, frozen=True):
    """Bytes of a log that are not what was written. Offsets and lengths are in bytes."""

    offset: int
    length: int
    kind: str
    """torn · garbled · nul · spliced · utf8 · surrogate · number · duplicate · deep · oversize · edited ·
    shape · order · unfinished"""
    seq: int | None = None
    """The `seq` of the entry that could be read despite the damage."""


class Flawed(Struct, frozen=True):
    """An entry that can be used, although its line is not what was written."""

    entry: AnyEntry
    kind: str


class Unreadable(Exception):
    """A line that holds no readable entry. `kind` is the reason, one of those of `Damage`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


_STARTS: dict[type[Entry], int] = {cls: 10 + len(tag) for tag, cls in ENTRIES.items()}
"""The length of `{"type":"…"` for each class."""


# ── entries to lines ──────────────────────────────────────────────────────────────────────────────


class EncodedBody(NamedTuple):
    """The JSON of a draft."""

    data: bytes
    stamps_at: int
    """The offset for the store's stamps: right after the type."""
    is_known: bool
    """Whether this version knows every field and block of it."""


def encode_body(entry: Entry) -> EncodedBody:
    """Return the JSON of a draft."""
    if isinstance(entry, Unknown):
        fields = {k: v for k, v in decode_raws(entry.json.encode()).items() if k not in STAMPS}
        body = encode({"type": entry.kind, "id": entry.id, **fields})
        return EncodedBody(body, 8 + len(encode(entry.kind)), False)
    if entry.void:
        return EncodedBody(encode(stripped(entry)), _STARTS[type(entry)], False)
    body = encode(entry)
    if b'"unknown":{' in body or b'"type":"?"' in body:
        return EncodedBody(encode(flat(entry)), _STARTS[type(entry)], False)
    return EncodedBody(body, _STARTS[type(entry)], True)


def seal(body: bytes, start: int, stamps: str) -> bytes:
    """Return the line of a draft with the store's `stamps` (`seq` and others), newline included."""
    text = b"%b,%b%b" % (body[:start], stamps.encode(), body[start:-1])
    return b'%b,"c":"%08x"}\n' % (text, zlib.crc32(text))  # a copy of `with_checksum`, for speed: every append


def with_checksum(text: bytes) -> bytes:
    """Return a line: its text, without the closing brace, and the checksum of that text."""
    return b'%b,"c":"%08x"}' % (text, zlib.crc32(text))


def without_checksum(line: bytes) -> bytes:
    """Return the text of a line, as `with_checksum` takes it."""
    return line[:-CHECKSUM]


def body_text(value: Entry | Block) -> str:
    """Return the JSON of an entry or block as in a log, without a checksum. `UnicodeEncodeError` if it is not Unicode.

    `Entry.to_json` is for programs: it escapes such text.
    """
    return encode(flat(value)).decode()


# ── lines to entries ──────────────────────────────────────────────────────────────────────────────


def is_verified(line: bytes) -> bool:
    """Whether the line ends in a checksum that matches it."""
    return (
        line[-CHECKSUM:-10] == b',"c":"'
        and line[-2:] == b'"}'
        and b"%08x" % zlib.crc32(memoryview(line)[:-CHECKSUM]) == line[-10:-2]
    )


def decode(line: bytes) -> AnyEntry | Flawed:
    """Decode a line (without its newline)."""
    # A copy of `is_verified`: reading a log spends most of its time here.
    body = line[:-CHECKSUM]
    if line[-16:-10] == b',"c":"' and line[-2:] == b'"}' and b"%08x" % zlib.crc32(body) == line[-10:-2]:
        try:
            entry = strict.decode(body + b"}")
        except msgspec.ValidationError:
            try:
                return _lenient(body + b"}")
            except UnicodeDecodeError:
                return _flawed(line)
        except BAD_JSON:
            return _flawed(line)
        if entry.void:
            return stand_in(entry)
        return entry if 0 < entry.seq < 1 << 63 else _lenient(body + b"}")
    return _flawed(line)


def _flawed(line: bytes) -> AnyEntry | Flawed:
    """Decode a line that our encoder did not make, with Python's own parser, which is more tolerant."""
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
    return "nul" if b"\0" in line else "torn" if line.startswith(b'{"type":"') else "garbled"


def without_surrogates(value: Any) -> Any:
    """Return the JSON value with every lone surrogate in its text replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {without_surrogates(key): without_surrogates(item) for key, item in items}
    return value


def _lenient(text: bytes) -> AnyEntry:
    """Decode an entry of a later version: known fields are decoded, the rest is kept verbatim.

    `UnicodeDecodeError` if the rest is not Unicode.
    """
    try:
        fields = decode_raws(text)
        header = decode_header(text)
    except BAD_JSON:
        raise Unreadable("shape") from None
    if header.seq < 1 or header.seq > 1 << 62 or not header.id or header.more < 0:
        raise Unreadable("shape")
    fields.pop("unverified", None)
    cls = ENTRIES.get(header.type)
    if cls is not None:
        try:
            built = cast("AnyEntry", _build(cls, fields))
            return stand_in(built) if built.void else built
        except BAD_JSON:
            pass  # a known field holds an unknown value: the whole entry is kept as unknown
    stamps = {name: getattr(header, name) for name in Header.__struct_fields__ if name != "type"}
    stamps |= {name: in_utc(stamps[name]) for name in _TIMES}
    try:
        blobs = _decode_names(fields.get("blobs", Raw(b"[]")))
    except BAD_JSON:
        blobs: list[str] = []
    return Unknown(kind=header.type, json=text.decode(), blobs=blobs, **stamps)


def _build(cls: type[Entry] | type[Block], fields: dict[str, Raw]) -> Any:
    declared = set(cls.__struct_fields__) - {"unknown"}
    own = {name: raw for name, raw in fields.items() if name in declared or name == "type"}
    unknown = {name: raw.copy() for name, raw in fields.items() if name not in own}
    own |= {name: Raw(encode(in_utc(_decode_time(own[name])))) for name in _TIMES if name in own}
    parts: dict[str, Any] = {}
    for name in shape(cls).parts:
        if name in own and bytes(own[name])[:1] == b"[":
            parts[name] = [_part(raw) for raw in _decode_list(own[name])]
            own[name] = Raw(b"[]")
    built = msgspec.json.decode(encode(own), type=cls)
    if unknown:
        for raw in unknown.values():
            bytes(raw).decode()  # msgspec does not look into what it leaves undecoded
        parts["unknown"] = unknown
    return msgspec.structs.replace(built, **parts) if parts else built


def decode_body(data: bytes, line: Entry) -> AnyEntry:
    """Decode an entry whose whole body is in a blob, with the stamps of the line that refers to it."""
    try:
        fields = decode_raws(data)
        whole = _build(type(line), fields)
    except BAD_JSON:
        raise Unreadable("shape") from None
    stamps = {name: getattr(line, name) for name in Header.__struct_fields__ if name != "type"}
    return msgspec.structs.replace(whole, unverified=line.unverified, blobs=line.blobs, **stamps)


def decode_block(data: bytes) -> AnyBlock:
    """Decode a block, even with fields of a later version."""
    return _part(Raw(data))


def _part(raw: Raw) -> Any:
    """Decode a block, or a message or reference in a compaction's replacement."""
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
    """Find verified entries that share one line, or follow a torn entry on it: (start, length, entry) for each.

    JSON nested in a caller's data is never taken for an entry. A stretch counts only if it ends where an entry can end
    (complete JSON never contains `}{`, and the last stretch must end the line), and only if it begins where the text
    before it allows no nested value.
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


_STRING = rb'"(?:[^"\\]+|\\.)*+("?)'  # also one that does not end: to look for its end from every quote takes minutes


def _takes_a_value(torn: bytes) -> bool:
    """Whether a value could come next after this incomplete JSON text."""
    import re

    rest = re.sub(_STRING, lambda string: b"0" if string[1] else b'"', torn, flags=re.DOTALL)
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
                return character == ord("[")
            closed -= 1
    return False
