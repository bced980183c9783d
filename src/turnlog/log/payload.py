"""Moves big payloads and bytes that are not Unicode from a line into blobs, and back.

Pure: `offload` returns the blobs that are needed, the caller stores them. An offloaded block or entry keeps a short
readable stand-in; its `blob` holds its whole JSON, so that `restore` returns exactly the original.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Block, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.codec import Unreadable, body_text, decode_block, decode_body, without_surrogates
from turnlog.log.digest import sha256
from turnlog.log.entry import Answer, Ask, Compaction, Custom, Edit, Entry, Message, Note, Ref, Set, Unknown
from turnlog.log.field import RefersToBlob, every, shape

PAYLOAD_LIMIT = 64 << 10
"""A larger payload goes to a blob."""
LINE_GOAL = 1 << 20
"""Payloads are taken out of a line, largest first, until it is at most this long."""

Blobs = dict[str, bytes]
_T = TypeVar("_T", bound=Block | Entry)
_E = TypeVar("_E", bound=Entry)


def digest(data: bytes) -> str:
    """Return the name of a blob: the digest of its content, with the algorithm in front."""
    return digest_of_key(sha256(data).digest())


def digest_of_key(key: bytes) -> str:
    """Return the digest with these bytes: see `digest_key`."""
    return "sha256:" + key.hex()


def digest_key(name: str) -> bytes:
    """Return the bytes of a digest. Raises `Invalid` for any other text."""
    algorithm, _, text = name.partition(":") if isinstance(name, str) else ("", "", "")  # pyright: ignore[reportUnnecessaryIsInstance]
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if algorithm != "sha256" or len(key) != 32 or len(text) != 64:
        raise Invalid(f"{name!r:.100} is not the digest of a blob", hint='it looks like "sha256:" and 64 hex digits')
    return key


def _keep(data: bytes, blobs: Blobs) -> str:
    name = digest(data)
    blobs[name] = data
    return name


def _shorten(value: Any, depth: int = 0) -> Any:
    """Return a shortened value, for people who look at the line."""
    if isinstance(value, str):
        return value if len(value) <= 256 else value[:256] + "…"
    if isinstance(value, dict) and depth < 4:
        items = list(cast("dict[str, Any]", value).items())[:16]
        return {key: _shorten(item, depth + 1) for key, item in items}
    if isinstance(value, list) and depth < 4:
        return [_shorten(item, depth + 1) for item in cast("list[Any]", value)[:16]]
    return value if isinstance(value, (int, float, bool)) else None


def _with_blocks(entry: _E, change: Callable[[AnyBlock], AnyBlock]) -> _E:
    """Return the entry with every block changed, including those of messages in it."""
    changes: dict[str, list[Any]] = {}
    for name in shape(type(entry)).parts:
        parts: list[Any] = getattr(entry, name) or []
        if parts:
            changes[name] = [
                _with_blocks(part, change)
                if isinstance(part, Message)
                else part
                if isinstance(part, Ref)
                else change(part)
                for part in parts
            ]
    return replace(entry, **changes) if changes else entry


# ── line to blobs ─────────────────────────────────────────────────────────────────────────────────


def offload(entry: Entry, floor: int, blobs: Blobs) -> Entry:
    """Return the entry with every payload above `floor` bytes, and all binary data, moved into `blobs`."""
    entry = _with_blocks(entry, lambda block: _offload_block(block, floor, blobs))
    if isinstance(entry, (Message, Compaction, Edit, Unknown)) or entry.blob is not None:
        return _offload_meta(entry, floor, blobs)
    text = body_text(entry).encode()
    if len(text) > floor:
        entry = replace(entry, blob=_keep(text, blobs), **_stand_in(entry))
    return entry


def _offload_meta(entry: Entry, floor: int, blobs: Blobs) -> Entry:
    """Offload the whole entry if its `meta` is too big. Blocks have blobs of their own."""
    if entry.meta is None or entry.blob is not None or isinstance(entry, Unknown):
        return entry
    if len(msgspec.json.encode(entry.meta)) <= floor:
        return entry
    return replace(entry, blob=_keep(body_text(entry).encode(), blobs), meta=_shorten(entry.meta))


def _stand_in(entry: Entry) -> dict[str, Any]:
    kind = shape(type(entry))
    short = {name: _shorten(getattr(entry, name)) for name in kind.lengthy}
    return {**short, **dict.fromkeys(kind.recomputed)}


def _offload_block(block: AnyBlock, floor: int, blobs: Blobs) -> AnyBlock:
    if isinstance(block, (Image, File)):
        if block.data is None:
            return block
        return replace(block, data=None, blob=_keep(block.data, blobs))
    if isinstance(block, ToolResult) and not isinstance(block.content, str):
        block = replace(block, content=[_offload_block(b, floor, blobs) for b in block.content])
    if block.blob is not None or isinstance(block, UnknownBlock):
        return block
    text = body_text(block).encode()
    if len(text) <= floor:
        return block
    name = _keep(text, blobs)
    if isinstance(block, ToolCall):
        return replace(block, input=_shorten(block.input), meta=_shorten(block.meta), blob=name)
    if isinstance(block, ToolResult):
        content: str | list[AnyBlock] = _shorten(block.content) if isinstance(block.content, str) else []
        details = _shorten(block.details)
        return replace(block, content=content, details=details, meta=_shorten(block.meta), blob=name)
    short = {"text": _shorten(block.text), "meta": _shorten(block.meta), "blob": name}
    if isinstance(block, Thinking):
        short["data"] = None
    return replace(block, **short)


def used_blobs(entry: Entry) -> list[str]:
    """Return the digest of every blob that the entry refers to."""
    return sorted({name for name in every(entry, RefersToBlob) if name})


# ── bytes that are not Unicode ────────────────────────────────────────────────────────────────────


def keep_bytes(entry: Entry, blobs: Blobs) -> Entry:
    """Return the entry with readable text in place of text that is not Unicode; the original bytes go into `blobs`."""
    entry = _with_blocks(entry, lambda block: _keep_block_bytes(block, blobs))
    if isinstance(entry, (Note, Ask, Answer)):
        return _keep_field_bytes(entry, "text", blobs)
    if isinstance(entry, Set):
        return _keep_field_bytes(entry, "value", blobs)
    if isinstance(entry, Custom):
        return _keep_field_bytes(entry, "data", blobs)
    return entry


def _keep_block_bytes(block: AnyBlock, blobs: Blobs) -> AnyBlock:
    if isinstance(block, (Text, Thinking)):
        return _keep_field_bytes(block, "text", blobs)
    if isinstance(block, ToolCall):
        return _keep_field_bytes(block, "input", blobs)
    if isinstance(block, ToolResult):
        if not isinstance(block.content, str):
            return replace(block, content=[_keep_block_bytes(b, blobs) for b in block.content])
        return _keep_field_bytes(block, "content", blobs)
    return block


def _keep_field_bytes(value: _T, name: str, blobs: Blobs) -> _T:
    """Store the original of a field as a blob: text as its bytes, anything else as JSON with escapes."""
    import json

    original = getattr(value, name)
    readable = without_surrogates(original)
    if readable == original:
        return value
    if isinstance(original, str):
        try:
            data = original.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            data = original.encode("utf-8", "surrogatepass")
    else:
        data = json.dumps(original).encode()
    return replace(value, raw=_keep(data, blobs), **{name: readable})


# ── back into the entry ───────────────────────────────────────────────────────────────────────────


def restore(entry: Entry, get: Callable[[str], bytes | None]) -> Entry:
    """Return the entry with its payloads restored. If `get` returns None, the stand-in stays."""
    if not entry.blobs:
        return entry
    if entry.blob is not None:
        data = _fetched(entry.blob, get)
        if data is not None:
            try:
                entry = decode_body(data, entry)
            except Unreadable:
                return entry
    return _with_blocks(entry, lambda block: _restore_block(block, get))


def _fetched(name: str, get: Callable[[str], bytes | None]) -> bytes | None:
    """Return a blob; None if there is none, or if the name is no digest, as in a line that was edited."""
    try:
        digest_key(name)
    except Invalid:
        return None
    return get(name)


def _restore_block(block: AnyBlock, get: Callable[[str], bytes | None]) -> AnyBlock:
    if isinstance(block, (Image, File)):
        return block
    if block.blob is not None:
        data = _fetched(block.blob, get)
        if data is not None:
            try:
                whole = decode_block(data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return block
            block = whole
    if isinstance(block, ToolResult) and not isinstance(block.content, str):
        return replace(block, content=[_restore_block(b, get) for b in block.content])
    return block
