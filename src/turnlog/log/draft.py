"""Drafts: entries of a caller, checked, offloaded and encoded once, ready for a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Block, File, Image, ToolResult, UnknownBlock
from turnlog.log.codec import (
    BAD_JSON,
    CHECKSUM,
    MAX_LINE,
    STAMPS,
    EncodedBody,
    Flawed,
    Unreadable,
    decode,
    encode_body,
    seal,
    strict,
)
from turnlog.log.entry import AnyEntry, Custom, Entry, Head, Message, Ref, Set, Unknown, is_wide
from turnlog.log.field import shape
from turnlog.log.payload import LINE_GOAL, PAYLOAD_LIMIT, Blobs, keep_bytes, offload, used_blobs
from turnlog.log.usage import Usage

ROLES = ("system", "user", "assistant", "tool")
STOPS = ("end", "tool_use", "length", "aborted", "error")
MAX_DEPTH = 200
MAX_ID = 1024
_STAMP_ROOM = 512
UNSTAMPED: dict[str, Any] = {
    name: default
    for name, default in zip(Entry.__struct_fields__, Entry.__struct_defaults__, strict=True)
    if name in STAMPS and name != "id"
}
"""The values of the stamps of an entry that is not in a log yet."""
_SCALARS = frozenset((str, int, bool, type(None)))
"""Types of which JSON can hold every value."""
_TEXT_TYPES = frozenset((str, type(None)))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS = (datetime(1000, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


class Draft(Struct, frozen=True, gc=False):
    """An entry that is about to be appended, with all that a store needs to know of it."""

    id: str
    body: bytes
    start: int
    is_node: bool
    is_fence: bool
    is_wide: bool
    is_known: bool
    """Whether this version knows every field and block of the entry."""
    at: int | None
    """The caller's time in milliseconds since 1970, if there is one."""
    blobs: list[str]
    """The blobs that the entry refers to."""

    def sealed(self, stamps: str) -> tuple[bytes, AnyEntry]:
        """Return the line with the store's stamps, and the entry that readers will get from it.

        Decoding the line is the check: a value of the wrong type is found before it is written.
        """
        line = seal(self.body, self.start, stamps)
        if not self.is_known:
            try:
                entry = decode(line[:-1])
            except Unreadable as why:
                raise Invalid(f"an entry that could not be read back: {why.kind}") from None
            if isinstance(entry, Flawed):
                raise Invalid(f"an entry that could not be read back: {entry.kind}")
            return line, entry
        try:
            return line, strict.decode(line[: -CHECKSUM - 1] + b"}")
        except msgspec.MsgspecError as error:
            raise Invalid(f"an entry that could not be read back: {error}") from None


def to_ms(at: datetime) -> int:
    """Convert a time to milliseconds since 1970."""
    if not isinstance(at, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the time {at!r:.80} is not a datetime")
    if at.tzinfo is None:
        raise Invalid(f"the time {at.isoformat()} has no time zone", hint="use an aware datetime")
    return (at - _EPOCH) // timedelta(milliseconds=1)


def to_text(ms: int) -> str:
    """Convert milliseconds since 1970 to the text in a log: `2026-11-15T07:00:12.345Z`."""
    if type(ms) is not int or not _FIRST_MS <= ms <= _LAST_MS:
        raise _no_time(ms)
    second, rest = divmod(ms, 1000)
    global _newest
    newest_second, text = _newest  # both at once: another thread may have another second
    if second != newest_second:
        text = (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.")
        _newest = second, text
    return f"{text}{rest:03d}Z"


def _no_time(ms: object) -> Invalid:
    hint = "a clock tells milliseconds since 1970, a whole number, in the years 1000 to 9999"
    return Invalid(f"the time {ms!r:.80} is not one of the years 1000 to 9999", hint=hint)


_newest = 0, "1970-01-01T00:00:00."
"""The last second that was formatted, and its text: consecutive entries often share a second."""


def prepare(entry: Entry) -> tuple[Draft, Blobs]:
    """Return a draft that is ready to be appended, and the blobs that must be stored before it."""
    node = entry.is_node or (type(entry) is Unknown and entry.parent is not None)
    at = None
    if (
        entry.seq or entry.at is not None or entry.parent is not None or entry.clock is not None or entry.more
        or entry.batch or entry.sealed or entry.again or entry.wide or entry.unverified
    ):  # fmt: skip
        # The caller set stamps, which only a store assigns: an entry that was read and is appended again.
        at = None if entry.at is None else to_ms(entry.clock or entry.at)
        entry = replace(entry, **UNSTAMPED)
    refers = _check(entry)
    blobs: Blobs = {}
    try:
        try:
            encoded = encode_body(entry)
        except UnicodeEncodeError:
            entry = keep_bytes(entry, blobs)
            encoded = encode_body(entry)
        if refers or blobs or len(encoded.data) > PAYLOAD_LIMIT:
            entry, encoded = _offload_until_it_fits(entry, blobs)
    except UnicodeEncodeError as error:
        raise Invalid(f"text that is not Unicode in a field that must be: {error}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid(f"a {entry.type} that is not JSON: {error}") from None
    except RecursionError:
        raise Invalid(f"a {entry.type} nested more than {MAX_DEPTH} levels deep") from None
    fence = node or type(entry) is Head
    wide = type(entry) is Set and is_wide(entry)
    body, start, is_known = encoded
    return Draft(entry.id, body, start, node, fence, wide, is_known, at, entry.blobs), blobs


def _offload_until_it_fits(entry: Entry, blobs: Blobs) -> tuple[Entry, EncodedBody]:
    """Move ever smaller payloads into blobs until the line is short enough."""
    encoded = EncodedBody(b"", 0, True)
    for limit in (PAYLOAD_LIMIT, 16 << 10, 4 << 10, 1 << 10):
        entry = offload(entry, limit, blobs)
        used = used_blobs(entry)
        if used != entry.blobs:
            entry = replace(entry, blobs=used)
        encoded = encode_body(entry)
        if len(encoded.data) <= LINE_GOAL - _STAMP_ROOM:
            break
    if len(encoded.data) > MAX_LINE - _STAMP_ROOM:
        raise Invalid(
            f"a {entry.type} of {len(encoded.data)} bytes: a line holds at most {MAX_LINE}",
            hint="put big data into blobs with home.put_blob",
        )
    return entry, encoded


class StampedDraft(Struct, frozen=True, gc=False):
    """A draft with the stamps that every store adds."""

    draft: Draft
    stamps: str
    at: int
    """The entry's time, in milliseconds since 1970."""


def stamp_drafts(drafts: list[Draft], *, floor: int, at: int, now: int, head: int) -> list[StampedDraft]:
    """Stamp the drafts: `seq` above `floor`, times never backwards, `head` as the parent of the first node."""
    stamped: list[StampedDraft] = []
    count = len(drafts)
    if type(now) is not int:
        raise _no_time(now)
    for index, draft in enumerate(drafts):
        floor += 1
        when = now if draft.at is None else draft.at
        if when > at:
            at = when
        stamps = f'"seq":{floor},"at":"{to_text(at)}"'
        if draft.is_node:
            stamps += f',"parent":{head}'
            head = floor
        if when < at:
            stamps += f',"clock":"{to_text(when)}"'
        if count > 1:
            stamps += f',"more":{count - 1 - index},"batch":{count}'
        stamped.append(StampedDraft(draft, stamps, at))
    return stamped


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


def _check(entry: Entry) -> bool:
    """Refuse an entry that cannot be stored. Returns whether it refers to blobs, or holds data that must become one."""
    if type(entry.id) is not str or not 0 < len(entry.id) <= MAX_ID:
        raise Invalid(f"the entry id {entry.id!r:.80} is not a text of 1 to {MAX_ID} characters")
    _check_fields(entry)
    refers = entry.blob is not None or entry.raw is not None
    if isinstance(entry, Message):
        return _check_message(entry) or refers
    kind = shape(type(entry))
    refers = kind.refers or refers
    if isinstance(entry, Custom) and entry.role not in ROLES:
        raise _no_role(entry.role)
    for name in kind.usages:
        usage = getattr(entry, name)
        if usage is not None:
            _check_usage(usage)
    for name in kind.parts:
        refers = _check_parts(getattr(entry, name) or []) or refers
    return refers


def _check_fields(value: Struct) -> None:
    """Refuse values that JSON cannot represent, where the encoder would change them."""
    kind = shape(type(value))
    for name, depth in kind.json:
        item = getattr(value, name)
        if item is not None:
            check_json(item, name, depth)
    for name in kind.numbers:
        item = getattr(value, name)
        if type(item) is float:
            raise Invalid(f"{name} is {item}, which is no whole number")
    if kind.has_lists or not _TEXT_TYPES.issuperset(map(type, kind.texts(value))):
        for name in kind.text_names:
            _refuse_bytes(getattr(value, name), name)
    for name in kind.inner:
        _check_inner(getattr(value, name))
    if kind.has_unknown and cast("Entry | Block", value).unknown:
        _check_unknown(cast("Entry | Block", value))


def _refuse_bytes(value: Any, where: str) -> None:
    """Refuse bytes in the place of text: the encoder would write them in base64."""
    items = cast("dict[Any, Any]", value).values() if isinstance(value, dict) else value
    for item in cast("list[Any]", items) if isinstance(value, (list, tuple, dict)) else (value,):
        if isinstance(item, (bytes, bytearray, memoryview)):
            raise Invalid(f"{where} is {item!r:.80}, which is no text", hint="decode it first")


def _check_unknown(value: Entry | Block) -> None:
    """Refuse fields of later versions that would take the place of known ones, or are no JSON."""
    for name, raw in value.unknown.items():
        is_known = name in value.__struct_fields__ and name != "unknown"
        if is_known or name == "type" or (name == "c" and isinstance(value, Entry)):
            raise Invalid(f"{name!r:.80} is no field of a later version", hint="leave `unknown` as it was read")
        _check_json_text(bytes(raw), Raw, f"the unknown field {name!r:.80}")


def _check_json_text(data: bytes, kind: Any, what: str) -> None:
    """Refuse what is to be copied into a line unchanged, unless it is JSON of that kind."""
    try:
        msgspec.json.decode(data, type=kind)
    except BAD_JSON as error:
        raise Invalid(f"{what} is not JSON: {error}") from None


def _check_inner(value: Any) -> None:
    if isinstance(value, Struct):
        _check_fields(value)
    elif isinstance(value, (list, tuple, dict)):
        items = cast("dict[Any, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for item in items:
            _check_inner(item)


def _check_parts(parts: list[Any]) -> bool:
    """Check a list of blocks, or of messages and references. Returns whether any part refers to blobs."""
    refers = False
    if isinstance(parts, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
        messages = [part for part in parts if isinstance(part, Message)]
        for message in messages:
            _check_fields(message)
            refers = _check_message(message) or refers
        parts = [part for part in parts if not isinstance(part, (Message, Ref))]
    return _check_blocks(parts) or refers


def _no_role(role: object) -> Invalid:
    return Invalid(f"there is no role {role!r}", hint=f"one of {', '.join(ROLES)}")


def _check_message(message: Message) -> bool:
    role = message.role
    if role not in ROLES:
        raise _no_role(role)
    if message.stop is not None and message.stop not in STOPS:
        raise Invalid(f"there is no stop reason {message.stop!r}", hint=f"one of {', '.join(STOPS)}")
    if message.usage is not None:
        _check_usage(message.usage)
    if message.began_at is not None:
        to_ms(message.began_at)
    return _check_blocks(message.blocks, no_results=role in ("user", "system"))


def _check_blocks(blocks: list[AnyBlock], *, no_results: bool = False) -> bool:
    if not isinstance(blocks, (list, tuple)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"blocks are a list, not {blocks!r:.80}")
    refers = False
    for block in blocks:
        if not isinstance(block, Block):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"{block!r:.80} is not a block", hint="use turnlog.Text and the like")
        if block.blob is not None or block.raw is not None:
            refers = True
        if isinstance(block, (Image, File)):
            refers = refers or block.data is not None
        elif isinstance(block, UnknownBlock):
            data = block.json.encode("utf-8", "surrogatepass") if isinstance(block.json, str) else b""  # pyright: ignore[reportUnnecessaryIsInstance]
            _check_json_text(data, dict[str, Raw], f"the block {block.kind!r:.80}")
        elif isinstance(block, ToolResult):
            if no_results:
                raise Invalid("a tool result in a message that is not a tool's", hint='give it the role "tool"')
            if not isinstance(block.content, str):
                refers = _check_blocks(block.content) or refers
        _check_fields(block)
    return refers


def _check_usage(usage: Usage) -> None:
    if not isinstance(usage, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"{usage!r:.80} is not a turnlog.Usage")
    for name in Usage.__struct_fields__:
        value = getattr(usage, name)
        if value is not None and (not isinstance(value, int) or value < 0):
            raise Invalid(f"{name} in a usage is {value}, which is no number of tokens")


def check_json(value: Any, where: str, depth: int = 0) -> None:
    """Refuse a value that JSON cannot represent; the error says where it is."""
    plain: object = value  # so the checker knows its type: a cast in here would cost as much as the check
    kind = type(plain)
    if kind in _SCALARS:
        return
    if depth > MAX_DEPTH:
        raise Invalid(f"{where[:80]} is nested more than {MAX_DEPTH} levels deep")
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise Invalid(f"the key {key!r:.80} in {where[:80]} is not text")
            if type(item) not in _SCALARS:
                check_json(item, f"{where}.{key}", depth + 1)
    elif kind is list or kind is tuple:
        for index, item in enumerate(value):
            if type(item) not in _SCALARS:
                check_json(item, f"{where}[{index}]", depth + 1)
    elif kind is float:
        if not isfinite(value):
            raise Invalid(f"{where[:80]} is {value}, which JSON cannot say", hint="use null or text")
    elif kind is not Raw:
        raise Invalid(f"{where[:80]} is {value!r:.80}, which is not JSON")
