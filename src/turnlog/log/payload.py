"""Big payloads and bytes that are not Unicode: out of the line into blobs, and back.

Pure: `offload` says which blobs there have to be, the caller stores them. A block or entry that was offloaded
keeps a short readable stand-in; its `blob` holds its whole JSON, so that `restore` gives back exactly what
was there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Block, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.codec import Unreadable, body_text, decode_block, decode_body, without_surrogates
from turnlog.log.entry import Checkpoint, Compaction, Custom, Edit, Entry, Message, Note, Set, Unknown

PAYLOAD_LIMIT = 64 << 10
"""A larger payload goes to a blob."""
LINE_GOAL = 1 << 20
"""Payloads are taken out of a line, largest first, until it is at most this long."""

Blobs = dict[str, bytes]
_T = TypeVar("_T", bound=Block | Entry)


def digest(data: bytes) -> str:
    """The name of a blob: its content's digest, tagged with the algorithm."""
    import hashlib

    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_key(name: str) -> bytes:
    """The bytes of a digest; refuses what is not one."""
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
    """A glimpse of a value, for people who look at the line."""
    if isinstance(value, str):
        return value if len(value) <= 256 else value[:256] + "…"
    if isinstance(value, dict) and depth < 4:
        items = list(cast("dict[str, Any]", value).items())[:16]
        return {key: _shorten(item, depth + 1) for key, item in items}
    if isinstance(value, list) and depth < 4:
        return [_shorten(item, depth + 1) for item in cast("list[Any]", value)[:16]]
    return value if isinstance(value, (int, float, bool)) else None


# ── out of the line ───────────────────────────────────────────────────────────────────────────────


def offload(entry: Entry, floor: int, blobs: Blobs) -> Entry:
    """The entry with every payload above `floor` bytes, and all binary, taken out into `blobs`."""
    changes: dict[str, Any] = {}
    if isinstance(entry, (Message, Edit, Custom)) and entry.blocks:
        changes["blocks"] = [_offload_block(block, floor, blobs) for block in entry.blocks]
    elif isinstance(entry, Compaction):
        changes["replacement"] = [
            offload(item, floor, blobs) if isinstance(item, Message) else item for item in entry.replacement
        ]
    if changes:
        entry = replace(entry, **changes)
    if not isinstance(entry, (Message, Compaction, Edit, Unknown)) and entry.blob is None:
        text = body_text(entry).encode()
        if len(text) > floor:
            entry = replace(entry, blob=_keep(text, blobs), **_stand_in(entry))
    return entry


def _stand_in(entry: Entry) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for name in ("text", "value", "data", "facts", "all", "meta"):
        if hasattr(entry, name):
            short[name] = _shorten(getattr(entry, name))
    if hasattr(entry, "state"):
        short["state"] = None
    return short


def _offload_block(block: AnyBlock, floor: int, blobs: Blobs) -> AnyBlock:
    if isinstance(block, (Image, File)):
        if block.data is None:
            return block
        return replace(block, data=None, blob=_keep(block.data, blobs))
    if isinstance(block, ToolResult) and isinstance(block.content, list):
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
    """Every blob that the entry refers to."""
    found = {entry.blob, entry.raw}

    def look(blocks: list[AnyBlock]) -> None:
        for block in blocks:
            found.update((block.blob, block.raw))
            if isinstance(block, ToolResult) and isinstance(block.content, list):
                look(block.content)

    if isinstance(entry, (Message, Edit, Custom)):
        look(entry.blocks or [])
    elif isinstance(entry, Compaction):
        for item in entry.replacement:
            if isinstance(item, Message):
                look(item.blocks)
    elif isinstance(entry, Checkpoint):
        for root in entry.roots:
            found.update((root.tree, root.rules))
    return sorted(name for name in found if name)


# ── bytes that are not Unicode ────────────────────────────────────────────────────────────────────


def keep_bytes(entry: Entry, blobs: Blobs) -> Entry:
    """The entry with text that is not Unicode replaced by what can be read, its bytes kept in `blobs`."""
    if isinstance(entry, (Message, Edit, Custom)) and entry.blocks:
        entry = replace(entry, blocks=[_keep_block_bytes(block, blobs) for block in entry.blocks])
    if isinstance(entry, Note):
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
        if isinstance(block.content, list):
            return replace(block, content=[_keep_block_bytes(b, blobs) for b in block.content])
        return _keep_field_bytes(block, "content", blobs)
    return block


def _keep_field_bytes(value: _T, name: str, blobs: Blobs) -> _T:
    """Text as its bytes, anything else as JSON with the odd characters escaped."""
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
    """The entry with its payloads back in place. Where `get` has nothing, the stand-in stays."""
    if not entry.blobs:
        return entry
    if entry.blob is not None:
        data = get(entry.blob)
        if data is not None:
            try:
                entry = decode_body(data, entry)
            except Unreadable:
                return entry
    if isinstance(entry, (Message, Edit, Custom)) and entry.blocks:
        return replace(entry, blocks=[_restore_block(block, get) for block in entry.blocks])
    if isinstance(entry, Compaction):
        items = [
            replace(item, blocks=[_restore_block(block, get) for block in item.blocks])
            if isinstance(item, Message)
            else item
            for item in entry.replacement
        ]
        return replace(entry, replacement=items)
    return entry


def _restore_block(block: AnyBlock, get: Callable[[str], bytes | None]) -> AnyBlock:
    if isinstance(block, (Image, File)):
        return block
    if block.blob is not None:
        data = get(block.blob)
        if data is not None:
            try:
                whole = decode_block(data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return block
            block = whole
    if isinstance(block, ToolResult) and isinstance(block.content, list):
        return replace(block, content=[_restore_block(b, get) for b in block.content])
    return block
