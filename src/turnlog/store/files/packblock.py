"""Blocks: small blobs of a pack, compressed together. One by one they would take half as much space again.

    block   := "BLK1" codec:u8 length:u64 stored:u64 sha256-of-table:32 bytes stored-bytes
    unpacked:  count:u32 table contents         table := (sha256:32 length:u64)*

The index of the pack names the block's offset for each blob in it.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from turnlog.log.digest import sha256
from turnlog.log.zstd import compressor
from turnlog.store.files.packformat import LEVEL, OBJECT, RAW, ZSTD

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

BLOCK = b"BLK1"
BLOCK_BYTES = 256 << 10
"""The size at which a block is closed: reading one small blob decompresses the whole block."""
SMALL = 64 << 10
"""Larger blobs are stored on their own, outside of blocks."""
ANEW_BYTES, ANEW_SMALL = 2 << 20, 256 << 10
"""`BLOCK_BYTES` and `SMALL` for rewritten packs: every state of a large folder is a blob, much like the one before."""
_FEW, _AHEAD = 4, 3
_COUNT = struct.Struct("<I")
_ROW = struct.Struct("<32sQ")

Block = dict[bytes, bytes]
Compress = Callable[[bytes], bytes]


def encode_block(blobs: Block, compress: Compress) -> bytes:
    """Encode a block for a pack."""
    table = b"".join(_ROW.pack(key, len(data)) for key, data in blobs.items())
    raw = b"".join([_COUNT.pack(len(blobs)), table, *blobs.values()])
    codec, stored = ZSTD, compress(raw)
    if len(stored) >= len(raw):
        codec, stored = RAW, raw
    return OBJECT.pack(BLOCK, codec, len(raw), len(stored), sha256(table).digest()) + stored


def decode_block(raw: bytes, named: bytes) -> Block | None:
    """Decode a block; None if its table is damaged. The blobs themselves are not verified here."""
    if len(raw) < _COUNT.size:
        return None
    (count,) = _COUNT.unpack_from(raw)
    start = _COUNT.size + count * _ROW.size
    table = raw[_COUNT.size : start]
    if len(table) != count * _ROW.size or sha256(table).digest() != named:
        return None
    blobs: Block = {}
    for key, length in _ROW.iter_unpack(table):
        blobs[key] = raw[start : start + length]
        start += length
    return blobs


class BlockCompressor:
    """Compresses blocks while the caller reads more; if there are many, on a thread."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._compress: Compress | None = None
        self._waiting: deque[tuple[Block, Callable[[], bytes]]] = deque()
        self._count = 0

    def __contains__(self, key: bytes) -> bool:
        return any(key in blobs for blobs, _ in self._waiting)

    @property
    def count(self) -> int:
        """The number of blobs that are waiting."""
        return sum(len(blobs) for blobs, _ in self._waiting)

    @property
    def size(self) -> int:
        """The uncompressed size of the waiting blobs in bytes."""
        return sum(len(data) for blobs, _ in self._waiting for data in blobs.values())

    def put(self, blobs: Block) -> None:
        """Add a block."""
        if self._compress is None:
            compress: Compress = compressor(LEVEL).compress
            self._compress = compress
        self._count += 1
        if self._count <= _FEW:
            data = encode_block(blobs, self._compress)
            self._waiting.append((blobs, lambda: data))
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # loading it takes as long as a small checkpoint

            self._pool = ThreadPoolExecutor(1, thread_name_prefix="turnlog-pack")
        self._waiting.append((blobs, self._pool.submit(encode_block, blobs, self._compress).result))

    def take(self, *, wait: bool) -> Iterator[tuple[Block, bytes]]:
        """Yield encoded blocks in order: all of them with `wait`, otherwise all but the last few."""
        while len(self._waiting) > (0 if wait else _AHEAD):
            blobs, result = self._waiting[0]
            data = result()
            self._waiting.popleft()
            yield blobs, data

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.shutdown()
