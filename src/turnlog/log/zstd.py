"""The only module that imports `zstandard`, on demand, because it is slow to load.

Compressed bytes may come from anyone, so decompression is bounded: the size that they declare is not trusted.
"""

from __future__ import annotations

from typing import Any

_RATIO = 40_000
"""The highest ratio that is accepted: zstd expands one byte to 32,768 bytes at most."""
_LEAST = 128 << 10
_PIECE = 1 << 20


def compressor(level: int, *, has_checksum: bool = False) -> Any:
    """Return a compressor, which can be reused."""
    import zstandard

    return zstandard.ZstdCompressor(level=level, write_checksum=has_checksum)


def decompressor() -> Any:
    """Return a decompressor, which can be reused."""
    import zstandard

    return zstandard.ZstdDecompressor()


def damage() -> type[Exception]:
    """Return the exception that is raised for bytes that cannot be decompressed."""
    import zstandard

    return zstandard.ZstdError


def unpacked(data: bytes, most: int, unpacker: Any = None) -> bytes | None:
    """Decompress one zstd frame. None if it is damaged, or declares or has more than `most` bytes.

    Pass `unpacker` to reuse one decompressor for many frames.
    """
    import zstandard

    bound = min(most, _RATIO * len(data) + _LEAST)
    try:
        size = zstandard.frame_content_size(data)
        if size > bound:
            return None
        unpacker = unpacker or decompressor()
        if size >= 0:
            return unpacker.decompress(data)
        pieces: list[bytes] = []
        reader = unpacker.stream_reader(data)
        while bound >= 0 and (piece := reader.read(_PIECE)):
            pieces.append(piece)
            bound -= len(piece)
        return b"".join(pieces) if bound >= 0 else None
    except (zstandard.ZstdError, MemoryError):
        return None
