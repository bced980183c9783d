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

    A record that names a call is known by the call's id and a sample of its content, any other record by a digest of
    its content. Records that are alike in that are numbered. Keys have to be cheap and small: there is one per record.

    `state` carries the counts of digests and of short names only. Agents with models on the same machine count their
    calls from `call_0` on, so that a short id comes again; a long one is random, and is not used twice.
    """

    def __init__(self, state: dict[str, int] | None = None) -> None:
        self._seen: set[int] = set()
        """Hashes of the long names."""
        self._again: dict[int, int] = {}
        """How often each long name occurred that occurred more than once, by its hash."""
        self._counts: dict[str, int] = dict(state or {})
        """How often each short name occurred, and each digest, by its beginning."""
        self._tail: list[str] = []
        """What was counted since the resume point."""

    def of(self, entry: Entry) -> str:
        """The key of the next record. One with the id `-`, and without a time, is taken as it is."""
        digest = digest_of(entry)
        return self._numbered(digest, digest[:_SHORT])

    def of_digest(self, digest: str) -> str:
        """The key of the next record with that digest."""
        return self._numbered(digest, digest[:_SHORT])

    def of_name(self, name: str) -> str:
        """The key of the next record of that name, which is the name itself if there was none before."""
        if len(name) < _LONG:
            return self._numbered(name, name)
        mark = hash(name)
        if mark not in self._seen:
            self._seen.add(mark)
            return name
        number = self._again[mark] = self._again.get(mark, 1) + 1
        return f"{name}.{number}"

    def _numbered(self, key: str, counted: str) -> str:
        number = self._counts[counted] = self._counts.get(counted, 0) + 1
        self._tail.append(counted)
        return key if number == 1 else f"{key}.{number}"

    def begin_tail(self) -> None:
        """Leave what comes from here on out of `state`."""
        self._tail.clear()

    def state(self) -> dict[str, int]:
        """The counts at the resume point."""
        counts = dict(self._counts)
        for counted in self._tail:
            counts[counted] -= 1
        return {counted: number for counted, number in counts.items() if number}


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
_LONG = 32
"""In characters, of a name that `bound` gives: that of a call whose id has 16 or less is shorter."""
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
"""Faster than JSON, and nobody reads it; it has no integers beyond 64 bits."""
