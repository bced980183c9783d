"""One pack on its way: filled piece by piece, and given its name when it is whole and on the disk."""

from __future__ import annotations

import hashlib
import os
import zlib
from types import TracebackType
from typing import TYPE_CHECKING, Any

from turnlog.log.ids import word
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.packformat import END, FOOTER, LEVEL, MAGIC, OBJECT, PIECE, RAW, ROW, STREAM, ZSTD, pack_name

if TYPE_CHECKING:
    from turnlog.store.files.packs import Packs


class PackWriter:
    """One pack on its way. Nothing of it can be seen until it is whole, synced and has its name."""

    def __init__(self, packs: Packs, disk: Disk, folder: str, *, anew: bool) -> None:
        import zstandard

        self.name = ""

        self._packs = packs
        self._disk = disk
        self._folder = folder
        self._temporary = os.path.join(folder, f".new-{word(16)}")
        self._fd = -1
        self._rows: dict[bytes, int] = {}
        self._places: dict[bytes, tuple[str, int]] | None = {} if anew else None
        self._relies = False
        """Whether something was left out because another pack has it."""
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._end = 0
        """Where the next object goes, what is buffered included."""
        self._zstd = zstandard.ZstdCompressor(level=LEVEL)

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._rows:
                with disk_errors(f"writing a pack of {len(self._rows)} blobs"):
                    self._finish()
            if kind is None and self._relies:
                self._packs.make_sure()
        finally:
            self._abandon()

    def add(self, data: bytes) -> str:
        """Keep these bytes; returns their digest."""
        hashed = hashlib.sha256(data)
        key = hashed.digest()
        if not self._has(key):
            stored = self._zstd.compress(data)
            codec = ZSTD
            if len(stored) >= len(data):
                codec, stored = RAW, data
            self._rows[key] = self._place()
            self._push(OBJECT.pack(b"OBJ1", codec, len(data), len(stored), key))
            self._push(stored)
        return "sha256:" + hashed.hexdigest()

    def add_file(self, fd: int) -> str:
        """Keep the rest of an open file, piece by piece; returns its digest."""
        with disk_errors("writing a file into a pack"):
            start = self._place()
            self._flush()
            hashed, length, stored = hashlib.sha256(), 0, 0
            squeezer: Any = self._zstd.chunker(chunk_size=PIECE)
            self._disk.write(self._fd, bytes(OBJECT.size))
            while piece := os.read(fd, PIECE):
                hashed.update(piece)
                length += len(piece)
                for squeezed in squeezer.compress(piece):
                    self._disk.write(self._fd, squeezed)
                    stored += len(squeezed)
            for squeezed in squeezer.finish():
                self._disk.write(self._fd, squeezed)
                stored += len(squeezed)
            key = hashed.digest()
            if self._has(key):
                self._disk.ftruncate(self._fd, start)
                self._disk.seek(self._fd, start)
            else:
                head = OBJECT.pack(b"OBJ1", STREAM, length, stored, key)
                self._disk.pwrite(self._fd, head, start)
                self._rows[key] = start
                self._end = start + OBJECT.size + stored
        return "sha256:" + hashed.hexdigest()

    def copy(self, key: bytes) -> None:
        """Keep a blob that is in another pack, verified: damage is not carried over."""
        data = self._packs.get("sha256:" + key.hex())
        self.add(data)

    def _has(self, key: bytes) -> bool:
        if self._places is None:
            self._places = self._packs.learn()  # once: what others add meanwhile is at worst kept twice
        self._relies = self._relies or key in self._places
        return key in self._rows or key in self._places

    def _place(self) -> int:
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
        rows = sorted(self._rows.items())
        index = b"".join(ROW.pack(key, place) for key, place in rows)
        start = self._end
        self._push(index + FOOTER.pack(start, len(rows), zlib.crc32(index), END))
        self._flush()
        self._disk.sync(self._fd)
        self.name = pack_name(list(self._rows))
        self._disk.rename(self._temporary, os.path.join(self._folder, self.name))
        self._disk.sync_folder(self._folder)
        self._packs.took(self.name, rows)
        self._disk.close(self._fd)
        self._fd = -1

    def _abandon(self) -> None:
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        self._disk.close(fd)
        try:
            self._disk.unlink(self._temporary)
        except OSError:
            return  # the disk is failing; a leftover without a name harms nobody
