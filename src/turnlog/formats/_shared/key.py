"""What tells one record from another where its source does not."""

from __future__ import annotations

from typing import Any
from zlib import adler32

import msgspec

from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Custom, Entry
from turnlog.log.identity import content_key

UUIDS = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
"""What the ids look like that most agents give to sessions."""


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
