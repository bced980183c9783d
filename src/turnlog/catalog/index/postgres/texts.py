"""Texts as a database stores them: each compressed alone, so that a deleted one leaves no trace in others."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from turnlog.catalog.index.keys import MAX_TEXT
from turnlog.errors import Corrupt

_FEW = 20


@lru_cache(maxsize=1)
def _tools() -> tuple[Any, Any]:
    from turnlog.log.zstd import compressor, decompressor  # needed only to show a hit, or to index

    return compressor(1), decompressor()


def pack(text: str) -> bytes:
    """Compress a text for storage."""
    return _tools()[0].compress(text.encode())


def pack_all(texts: list[str]) -> list[bytes]:
    """Compress many texts at once: between single calls, a thread would wait for the interpreter lock."""
    if len(texts) < _FEW:
        return [pack(text) for text in texts]
    packed = _tools()[0].multi_compress_to_buffer([text.encode() for text in texts], threads=1)
    return [packed[number].tobytes() for number in range(len(packed))]


def unpack(data: bytes) -> str:
    """Decompress a stored text."""
    from turnlog.log.zstd import unpacked

    content = unpacked(data, 4 * MAX_TEXT, _tools()[1])
    if content is None:
        hint = "the session is not affected: `turnlog show` reads its log"
        raise Corrupt("a text in the index in the database cannot be unpacked", hint=hint)
    return content.decode()
