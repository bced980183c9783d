"""What tells one record from another where its source does not."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any
from zlib import adler32

import msgspec
from msgspec import Struct

from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Custom, Entry
from turnlog.log.identity import content_key

UUIDS = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
"""What the ids look like that most agents give to sessions."""


NONE: dict[str, str] = {}
"""For records that name no other."""


class KeyState(Struct, frozen=True, omit_defaults=True):
    """The keys that were given before a resume point, as far as the same ones may come again."""

    digests: dict[str, int] = {}
    """How often each digest occurred, by its beginning."""
    names: list[str] = []
    """The short names, as often as they occurred."""


class Keys:
    """A key for each record of a source that is only ever appended to, and whose records have no ids that stay.

    A record that names a call is known by the call's id and a sample of its content, any other record by a digest of
    its content. Records that are alike in that are numbered. Keys have to be cheap and small: there is one per record.

    Long names are not in the state: their ids are random, and are not used twice. Servers of local models count their
    calls from `call_0` on, so a short name may come again.
    """

    def __init__(self, state: KeyState | None = None) -> None:
        before = state or KeyState()
        self._digests = dict(before.digests)
        self._names = dict(Counter(before.names))
        self._long, self._long_repeats = set[int](), dict[int, int]()
        """The long names, by their hashes, and how often each of those occurred that came again."""
        self._repeats = [name for name, count in self._names.items() for _ in range(1, count)]
        """The short names that occurred before, each time they came again."""
        self._tail: list[str] = []
        """The beginnings of the digests behind the resume point."""
        self.begin_tail()

    def of(self, entry: Entry) -> str:
        """The key of the next record. One with the id `-`, and without a time, is taken as it is."""
        return self.of_digest(digest_of(entry))

    def of_digest(self, digest: str) -> str:
        """The key of the next record with that digest."""
        short = digest[:_SHORT]
        number = self._digests[short] = self._digests.get(short, 0) + 1
        self._tail.append(short)
        return digest if number == 1 else f"{digest}.{number}"

    def of_name(self, name: str) -> str:
        """The key of the next record of that name, which is the name itself if there was none before."""
        if len(name) < _LONG:
            counts = self._names
            if name not in counts:
                counts[name] = 1
                return name
            self._repeats.append(name)
            number = counts[name] = counts[name] + 1
        else:
            hashed = hash(name)
            if hashed not in self._long:
                self._long.add(hashed)
                return name
            number = self._long_repeats[hashed] = self._long_repeats.get(hashed, 1) + 1
        return f"{name}.{number}"

    def begin_tail(self) -> None:
        """Leave what comes from here on out of the state."""
        self._tail.clear()
        self._in_state = len(self._names), len(self._repeats)

    def state(self) -> KeyState:
        """What has to be known to go on from the resume point."""
        digests = dict(self._digests)
        for short in self._tail:
            digests[short] -= 1
        names, repeats = self._in_state
        return KeyState(
            {short: count for short, count in digests.items() if count},
            [*islice(self._names, names), *sorted(self._repeats[:repeats])],
        )


def bound(call: str, content: Any, also: int) -> str:
    """A name for a record that a call tells from others: the call, and a sum of how long it is and a sample of it.

    To sum up all that a tool answered would take longer than to read it.
    """
    try:
        whole = content if isinstance(content, str) else _encode(content)
        size = len(whole)
        sample = whole[:: (size >> 6) + 1]
        data = sample.encode() if isinstance(sample, str) else sample
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
