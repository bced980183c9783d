"""The text of each entry, kept compressed: what is shown of a hit, and what FTS5 needs to forget one."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from turnlog.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterable

SHIFT = 20
"""The id of an entry is its time in milliseconds, shifted by this many bits, plus a number."""
_FEW = 20
MAX_TEXT = 1 << 20
"""The maximum number of characters of a text that are indexed and stored."""


@lru_cache(maxsize=1)
def _tools() -> tuple[Any, Any]:
    from turnlog.log.zstd import compressor, decompressor  # only who shows a hit, or reads something new, needs it

    return compressor(1), decompressor()


def pack(text: str) -> bytes:
    """A text as it is kept."""
    return _tools()[0].compress(text.encode())


def pack_all(texts: list[str]) -> list[bytes]:
    """Many at once: between single ones, a thread would wait for others that run Python."""
    if len(texts) < _FEW:
        return [pack(text) for text in texts]
    packed = _tools()[0].multi_compress_to_buffer([text.encode() for text in texts], threads=1)
    return [packed[number].tobytes() for number in range(len(packed))]


def unpack(data: bytes) -> str:
    """The text again."""
    from turnlog.log.zstd import unpacked

    content = unpacked(data, 4 * MAX_TEXT, _tools()[1])
    if content is None:
        raise damaged()
    return content.decode()


def damaged() -> Corrupt:
    """What is said of a text that cannot be unpacked."""
    return Corrupt("a text in the catalog is damaged", hint="`Catalog.rebuild()` makes it anew")


def sum_of(text: str) -> int:
    """A number by which a text is seen to be another one than before. Quick, for there are many and long ones."""
    from zlib import adler32, crc32

    data = text.encode("utf-8", "surrogatepass")
    return crc32(data) << 31 ^ adler32(data)


def digest(text: str) -> int:
    """A number that tells this text from others, and fits into a column."""
    from turnlog.log.digest import blake2b

    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


def token_of(request: str | None, entry: str) -> int:
    """What tells a request from others: even for its own id, odd for that of its entry."""
    if request is not None:
        return digest("r" + request) & ~1
    return digest("e" + entry) | 1


def clean(text: str) -> str:
    """That text without what cannot be stored: halves of characters."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def lines(words: Iterable[str]) -> str:
    """Words for a column that has several: a line feed before and after each, so that a whole one can be looked for."""
    text = "\n".join(dict.fromkeys(clean(word.replace("\n", " ")) for word in words))
    return f"\n{text}\n" if text else ""


def path_column(path: str) -> str | bytes:
    """A path for a column: as text, or as bytes where it is not Unicode."""
    try:
        path.encode()
    except UnicodeEncodeError:
        import os

        return os.fsencode(path)
    return path


def path_of(value: str | bytes) -> str:
    """The path in a column."""
    if isinstance(value, bytes):
        import os

        return os.fsdecode(value)
    return value
