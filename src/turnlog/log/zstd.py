"""The one place that knows `zstandard`: few need it, and it takes a while to load.

Compressed bytes that anybody may have written are unpacked within bounds: what they say of their size is no proof.
"""

from __future__ import annotations

from typing import Any

_RATIO = 40_000
"""zstd makes 32,768 bytes of one at most."""
_LEAST = 128 << 10
_PIECE = 1 << 20


def compressor(level: int, *, has_checksum: bool = False) -> Any:
    """What compresses many things, one after the other."""
    import zstandard

    return zstandard.ZstdCompressor(level=level, write_checksum=has_checksum)


def decompressor() -> Any:
    """What unpacks many things, one after the other."""
    import zstandard

    return zstandard.ZstdDecompressor()


def damage() -> type[Exception]:
    """What is raised for bytes that cannot be unpacked."""
    import zstandard

    return zstandard.ZstdError


def unpacked(data: bytes, most: int, unpacker: Any = None) -> bytes | None:
    """What one frame of zstd holds; None where it is damaged, or says or has more than `most` bytes.

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
