"""Writing a pack: it is filled piece by piece, and gets its name when it is complete and on the disk."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import TracebackType
from typing import Any

from turnlog.log.digest import sha256
from turnlog.log.payload import digest_of_key
from turnlog.log.zstd import compressor
from turnlog.store import OpenFile
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.names import new_temporary_name
from turnlog.store.files.packblock import ANEW_BYTES, ANEW_SMALL, BLOCK_BYTES, SMALL, Block, BlockCompressor
from turnlog.store.files.packformat import END, FOOTER, LEVEL, MAGIC, OBJECT, PIECE, RAW, ROW, STREAM, ZSTD, pack_name
from turnlog.store.files.packs import Location, Packs


class PackWriter:
    """Writes one pack. The pack is invisible until it is complete and synced."""

    def __init__(self, packs: Packs, *, anew: bool = False, progress: Callable[[int], None] | None = None) -> None:
        """`anew`: add blobs even if other packs have them. `progress` as in `Blobs.add`."""
        self.name = ""

        self._packs = packs
        self._disk = packs.disk
        self._progress = progress
        self._temporary = os.path.join(packs.folder, new_temporary_name())
        self._fd = -1
        self._rows: dict[bytes, int] = {}
        self._elsewhere: dict[bytes, Location] | None = {} if anew else None
        """Blobs in other packs, which are not added again; None before the packs were listed."""
        self._listed: frozenset[str] | None = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._block: Block = {}
        """The block of small blobs that is being filled."""
        self._blocked = 0
        self._small, self._full = (ANEW_SMALL, ANEW_BYTES) if anew else (SMALL, BLOCK_BYTES)
        self._compressor = BlockCompressor()
        self._end = 0
        """The offset of the next object, after the buffered data."""
        self._zstd = compressor(LEVEL)

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and (self._rows or self._block or self._compressor.count):
                with disk_errors(f"writing a pack of {len(self._rows)} blobs"):
                    self._finish()
            if kind is None:
                self._packs.sync_names()  # blobs may have been left out because another pack has them
            self._abandon()
        except BaseException:
            self._abandon()
            raise

    def __del__(self) -> None:
        """Clean up after an interrupt that came before `__exit__` could."""
        if hasattr(self, "_zstd"):
            self._abandon()

    def __call__(self, content: bytes | OpenFile) -> str:
        """See `Blobs.add`. Errors of an open file are raised unchanged; nothing of that file is kept then."""
        name = self._add_pieces(content.pieces(PIECE)) if isinstance(content, OpenFile) else self._add(content)
        if self._progress is not None:
            self._progress(self.size_bytes)
        return name

    def _add(self, data: bytes) -> str:
        hashed = sha256(data)
        key = hashed.digest()
        if not self._has(key):
            if len(data) > self._small:
                self._add_alone(key, data)
            else:
                self._next_offset()  # so that the file exists
                self._block[key] = data
                self._blocked += len(data)
                if self._blocked >= self._full:
                    self._close_block()
        return digest_of_key(hashed.digest())

    def _add_alone(self, key: bytes, data: bytes) -> None:
        stored = self._zstd.compress(data)
        codec = ZSTD
        if len(stored) >= len(data):
            codec, stored = RAW, data
        self._rows[key] = self._next_offset()
        self._push(OBJECT.pack(b"OBJ1", codec, len(data), len(stored), key))
        self._push(stored)

    def _close_block(self) -> None:
        blobs, self._block, self._blocked = self._block, {}, 0
        if len(blobs) == 1:
            self._add_alone(*blobs.popitem())
        elif blobs:
            self._compressor.put(blobs)
            self._write_blocks(wait=False)

    def _write_blocks(self, *, wait: bool) -> None:
        for keys, data in self._compressor.take(wait=wait):
            self._rows.update(dict.fromkeys(keys, self._next_offset()))
            self._push(data)

    def _add_pieces(self, pieces: Iterator[bytes]) -> str:
        with disk_errors("writing a file into a pack"):
            start = self._next_offset()
            self._flush()
            self._disk.write(self._fd, bytes(OBJECT.size))
        hashed, length, stored = sha256(), 0, 0
        chunker: Any = self._zstd.chunker(chunk_size=PIECE)
        try:
            for piece in pieces:
                hashed.update(piece)
                length += len(piece)
                stored += self._write_all(chunker.compress(piece))
            stored += self._write_all(chunker.finish())
        except BaseException:
            self._cut(start)
            raise
        key = hashed.digest()
        if self._has(key):
            self._cut(start)
        else:
            with disk_errors("writing a file into a pack"):
                self._disk.pwrite(self._fd, OBJECT.pack(b"OBJ1", STREAM, length, stored, key), start)
            self._rows[key] = start
            self._end = start + OBJECT.size + stored
        return digest_of_key(hashed.digest())

    def _write_all(self, chunks: Iterable[bytes]) -> int:
        written = 0
        for chunk in chunks:
            with disk_errors("writing a file into a pack"):
                self._disk.write(self._fd, chunk)
            written += len(chunk)
        return written

    def _cut(self, start: int) -> None:
        with disk_errors("writing a file into a pack"):
            self._disk.ftruncate(self._fd, start)
            self._disk.seek(self._fd, start)

    def copy(self, key: bytes) -> None:
        """Copy a blob from another pack, verified, so that damage is not copied. A big one is copied in pieces."""
        digest = digest_of_key(key)
        pieces = self._packs.stream(digest)
        first = next(pieces, b"")
        second = next(pieces, None)
        if second is None:
            self._add(first)
        else:
            self._add_pieces(chain((first, second), pieces))

    @property
    def size_bytes(self) -> int:
        """The size of the pack so far; blobs that the store already had take no space."""
        count = len(self._rows) + len(self._block) + self._compressor.count
        waiting = self._blocked + self._compressor.size  # before they are compressed
        return self._end + waiting + count * ROW.size + FOOTER.size if count else 0

    def packs(self) -> frozenset[str]:
        """See `ListPacks`."""
        if self._listed is None:
            with disk_errors("listing packs"):
                self._listed = frozenset(self._packs.names())
        # A blob may have been found in a pack that another thread has added since.
        return self._listed if self._elsewhere is None else self._listed | self._packs.known

    def _has(self, key: bytes) -> bool:
        if self._elsewhere is None:
            # Only once: at worst, a blob that others add meanwhile is stored twice.
            self._elsewhere = self._packs.learn(self._listed)
        return key in self._rows or key in self._block or key in self._compressor or key in self._elsewhere

    def _next_offset(self) -> int:
        """Return the offset of the next object. The file is created when this is first called."""
        if self._fd < 0:
            with disk_errors("making a pack"):
                self._fd = self._disk.open(self._temporary, os.O_RDWR, create=True)
            self._push(MAGIC)
        return self._end

    def _push(self, data: bytes) -> None:
        self._buffer.append(data)
        self._buffered += len(data)
        self._end += len(data)
        if self._buffered > PIECE:
            with disk_errors("writing a pack"):
                self._flush()

    def _flush(self) -> None:
        if self._buffer:
            data = b"".join(self._buffer)
            self._buffer, self._buffered = [], 0
            self._disk.write(self._fd, data)

    def _finish(self) -> None:
        self._close_block()
        self._write_blocks(wait=True)
        rows = sorted(self._rows.items())
        index = b"".join(ROW.pack(key, offset) for key, offset in rows)
        start = self._end
        self._push(index + FOOTER.pack(start, len(rows), zlib.crc32(index), END))
        self._flush()
        self._disk.sync(self._fd)
        self.name = pack_name(list(self._rows))
        self._disk.rename(self._temporary, os.path.join(self._packs.folder, self.name))
        self._temporary = ""
        self._packs.register(self.name, rows)

    def _abandon(self) -> None:
        """Release everything; a finished pack stays. Idempotent."""
        self._compressor.close()
        # Forgotten before it is closed, and closed once: its number may be reused by then.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._disk.close(fd)
        temporary, self._temporary = self._temporary, ""
        if temporary:
            self._disk.discard(temporary)
