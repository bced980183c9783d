"""Identity of imported entries: the key of their record, or a digest of their content."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Entry, Message


def content_key(entry: Entry) -> str:
    """Return the identity of a record without a key: a digest of its content, without times and ids."""
    plain = replace(
        entry, id="-", seq=0, at=None, clock=None, parent=None, turn=None, origin=None, blobs=[], more=0, batch=0
    )
    if isinstance(plain, Compaction):
        inner = [replace(m, id="-", at=None, origin=None) if isinstance(m, Message) else m for m in plain.replacement]
        plain = replace(plain, replacement=inner, keep=0)
    try:
        data = msgspec.json.encode(plain, order="deterministic")
    except UnicodeEncodeError:
        data = repr(plain).encode("utf-8", "surrogatepass")
    return sha256(data).hexdigest()[:24]


def gist(entry: Entry) -> str:
    """Return a digest of role, text, calls and results, the same in every format; "" for a message without any."""
    if not isinstance(entry, Message):
        return ""
    essence: list[Any] = [entry.role]
    for block in entry.blocks:
        if isinstance(block, Text):
            essence.append(block.text.strip())
        elif isinstance(block, ToolCall):
            essence.append([block.name, block.input])
        elif isinstance(block, ToolResult):
            content = block.content
            parts = [part.text for part in content if isinstance(part, Text)] if not isinstance(content, str) else []
            essence.append((content if isinstance(content, str) else "\n".join(parts)).strip())
    try:
        return sha256(msgspec.json.encode(essence, order="deterministic")).hexdigest() if len(essence) > 1 else ""
    except UnicodeEncodeError:
        return ""


def id_of(key: str | None, entry: Entry, counts: Counter[str]) -> str:
    """Return the id of an imported record: its key, or a digest of its content and a number among equal ones."""
    if key is not None:
        return key_id(key)
    digest = content_key(entry)
    counts[digest] += 1
    return f"{digest}.{counts[digest]}"


def key_id(key: str) -> str:
    """Return the entry id for the key of a record."""
    if 0 < len(key) <= 200 and key.isprintable():
        return key
    return "key." + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
