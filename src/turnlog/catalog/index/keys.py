"""Numbers by which entries, texts and requests are found again."""

from __future__ import annotations

SHIFT = 20
"""The id of an entry is its time in milliseconds, shifted by this many bits, plus a number."""
MAX_TEXT = 1 << 20
"""The maximum number of characters of a text that are indexed and stored."""
OF_ENTRY = 1
"""The bit of a token whose request is known by its entry alone: such usage may be that of several requests."""


def sum_of(text: str) -> int:
    """A hash that shows whether a text has changed. Fast, because texts are many and long."""
    from zlib import adler32, crc32

    data = text.encode("utf-8", "surrogatepass")
    return crc32(data) << 31 ^ adler32(data)


def hash_of(text: str) -> int:
    """A hash of a text that fits into an integer column."""
    from turnlog.log.digest import blake2b

    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


def token_of(request: str | None, entry: str) -> int:
    """The key of a request: even if made of the id of the request, odd if of the id of its entry."""
    if request is not None:
        return hash_of("r" + request) & ~OF_ENTRY
    return hash_of("e" + entry) | OF_ENTRY
