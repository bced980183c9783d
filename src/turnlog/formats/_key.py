"""What tells one record from another where its source does not."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Entry, Message


def content_key(entry: Entry) -> str:
    """What tells a record without a key from others: its content, whenever it was said and however it was written."""
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
    """What a message says whatever format it went through: who, the words, the calls and the answers; "" if nothing."""
    if not isinstance(entry, Message):
        return ""
    said: list[Any] = [entry.role]
    for block in entry.blocks:
        if isinstance(block, Text):
            said.append(block.text.strip())
        elif isinstance(block, ToolCall):
            said.append([block.name, block.input])
        elif isinstance(block, ToolResult):
            content = block.content
            parts = [part.text for part in content if isinstance(part, Text)] if not isinstance(content, str) else []
            said.append((content if isinstance(content, str) else "\n".join(parts)).strip())
    try:
        return sha256(msgspec.json.encode(said, order="deterministic")).hexdigest() if len(said) > 1 else ""
    except UnicodeEncodeError:
        return ""


class Keys:
    """A key for each record of a source that is only ever appended to: what it says, and which of its kind it is.

    It has to be cheap, and small: there are as many as there are records.
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def of(self, entry: Entry) -> str:
        """The key of the next record. One with the id `-`, and without a time, is taken as it is."""
        if entry.id == "-" and type(entry) is not Compaction:
            try:
                digest = sha256(_encode(entry)).hexdigest()[:24]
            except (UnicodeEncodeError, OverflowError):
                digest = content_key(entry)
        else:
            digest = content_key(entry)
        # The first of its kind is called like what is remembered of it: readers that keep keys keep them once.
        number = self._counts[digest] = self._counts.get(digest, 0) + 1
        return digest if number == 1 else f"{digest}.{number}"


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
"""Faster than JSON, and nobody reads it; it has no integers beyond 64 bits."""


def overlap(before: list[str], said: list[str]) -> tuple[int, int]:
    """Where the longest end of what was there stands in what is there now, and how long it is.

    Both are looked at from their ends, so that it is the search of a beginning: Knuth, Morris and Pratt.
    """
    if not before:
        return 0, 0
    wanted = before[::-1]
    fall = [0] * len(wanted)
    for index in range(1, len(wanted)):
        length = fall[index - 1]
        while length and wanted[index] != wanted[length]:
            length = fall[length - 1]
        fall[index] = length + (wanted[index] == wanted[length])
    best, end, length = 0, 0, 0
    for index, digest in enumerate(reversed(said)):
        while length and (length == len(wanted) or digest != wanted[length]):
            length = fall[length - 1]
        length += digest == wanted[length]
        if length > best:
            best, end = length, index + 1
    return len(said) - end, best
