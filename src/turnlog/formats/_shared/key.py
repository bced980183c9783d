"""What tells one record from another where its source does not."""

from __future__ import annotations

from collections import Counter
from typing import Any
from zlib import adler32

import msgspec
from msgspec.structs import replace

from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Custom, Entry, Message

UUIDS = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
"""What the ids look like that most agents give to sessions."""


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


NONE: dict[str, str] = {}
"""For records that name no other."""


class Keys:
    """A key for each record of a source that is only ever appended to, and whose records have no ids that stay.

    What names a call is known by it, and by a sample of what it says; all else by a digest of all that it says. Of
    several that are alike in that, each has its number. It has to be cheap, and small: there are as many as records.
    """

    def __init__(self, state: dict[str, int] | None = None) -> None:
        self._seen: set[int] = set()
        """Hashes of the names of those with a call, and how many there are of those that are not the only one."""
        self._again: dict[int, int] = {}
        self._counts: dict[str, int] = dict(state or {})
        """How often each content is there that names no call: the beginning of its digest."""
        self._since: list[str] = []
        """Those that came since the mark."""

    def of(self, entry: Entry) -> str:
        """The key of the next record. One with the id `-`, and without a time, is taken as it is."""
        return self.next(digest_of(entry))

    def next(self, digest: str) -> str:
        """The same for one whose digest is known."""
        short = digest[:_SHORT]
        number = self._counts[short] = self._counts.get(short, 0) + 1
        self._since.append(short)
        return digest if number == 1 else f"{digest}.{number}"

    def single(self, name: str) -> str:
        """The key of the next record of that name, which is the name itself if there was none before."""
        mark = hash(name)
        if mark not in self._seen:
            self._seen.add(mark)
            return name
        number = self._again[mark] = self._again.get(mark, 1) + 1
        return f"{name}.{number}"

    def mark(self) -> None:
        """What comes from here on is not in `state`."""
        self._since.clear()

    def state(self) -> dict[str, int]:
        """What has to be known to go on from the mark. Calls have ids: what names one is there once."""
        counts = dict(self._counts)
        for short in self._since:
            counts[short] -= 1
        return {short: number for short, number in counts.items() if number}


def bound(call: str, content: Any, also: int) -> str:
    """A name for a record that a call tells from others: the call, and a sum of how long it is and a sample of it.

    To sum up all that a tool answered would take longer than to read it.
    """
    try:
        if type(content) is str:
            size = len(content)
            data = content[:: (size >> 6) + 1].encode()
        else:
            data = _encode(content)
            size = len(data)
            data = data[:: (size >> 6) + 1]
    except (UnicodeEncodeError, OverflowError):
        data, size = content_key(Custom(id="-", kind="", data=content)).encode(), 0
    return f"{call}.{also}.{adler32(data, size)}"


def digest_of(entry: Entry) -> str:
    """A digest of all that an entry says."""
    if entry.id != "-" or type(entry) is Compaction:
        return content_key(entry)
    try:
        return sha256(_encode(entry)).hexdigest()[:24]
    except (UnicodeEncodeError, OverflowError):
        return content_key(entry)


_SHORT = 12
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
"""Faster than JSON, and nobody reads it; it has no integers beyond 64 bits."""


def overlap(before: list[str], now: list[str]) -> tuple[int, int]:
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
    for index, digest in enumerate(reversed(now)):
        while length and (length == len(wanted) or digest != wanted[length]):
            length = fall[length - 1]
        length += digest == wanted[length]
        if length > best:
            best, end = length, index + 1
    return len(now) - end, best


def id_of(key: str | None, entry: Entry, counts: Counter[str]) -> str:
    """The id an imported record has: its key, or its content and which of its kind it is."""
    if key is not None:
        return key_id(key)
    digest = content_key(entry)
    counts[digest] += 1
    return f"{digest}.{counts[digest]}"


def key_id(key: str) -> str:
    """The entry id for the key of a record."""
    if 0 < len(key) <= 200 and key.isprintable():
        return key
    return "key." + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
