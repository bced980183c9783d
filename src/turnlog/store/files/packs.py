"""Blobs in packs: content-addressed, compressed, deduplicated, and never changed once they have their name.

    pack    := "TURNPACK1\\n" object* index footer
    object  := "OBJ1" codec:u8 length:u64 stored:u64 sha256:32 bytes stored-bytes
    index   := (sha256:32 offset:u64)*          offset of the object
    footer  := index-offset:u64 count:u64 crc32-of-index:u32 "TURNEND1"

Numbers are little-endian; codec 0 is raw, 1 is zstandard. A pack is named by the SHA-256 of its sorted digests, so
the pack of a single blob is found without an index, and the objects describe themselves should the index be lost.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import zlib
from collections.abc import Iterator

from turnlog.errors import Corrupt, NotFound
from turnlog.log.ids import word
from turnlog.log.payload import digest_key
from turnlog.store.files.disk import Disk, disk_errors

MAGIC = b"TURNPACK1\n"
_END = b"TURNEND1"
_OBJECT = struct.Struct("<4sBQQ32s")
_ROW = struct.Struct("<32sQ")
_FOOTER = struct.Struct("<QQI8s")
_RAW, _ZSTD = 0, 1
_SUFFIX = ".pack"
_LEVEL = 3


def pack_name(keys: list[bytes]) -> str:
    """The file name of the pack that holds exactly these blobs."""
    return hashlib.sha256(b"".join(sorted(keys))).hexdigest() + _SUFFIX


class Packs:
    """All packs in one folder."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._mutex = threading.Lock()
        self._places: dict[bytes, tuple[str, int]] = {}
        self._known: set[str] = set()

    def put(self, blobs: dict[str, bytes]) -> None:
        """Keep these, in one new pack, synced and under its name when this returns."""
        with self._mutex:
            wanted = {digest_key(digest): data for digest, data in blobs.items()}
            new = {key: data for key, data in wanted.items() if self._place(key) is None}
            if new:
                with disk_errors(f"writing a pack of {len(new)} blobs"):
                    self._write(new)

    def _write(self, new: dict[bytes, bytes]) -> None:
        name = pack_name(list(new))
        temporary = os.path.join(self._folder, f".new-{word(16)}")
        rows: list[tuple[bytes, int]] = []
        fd = self._disk.open(temporary, os.O_WRONLY, create=True)
        try:
            try:
                self._disk.write(fd, MAGIC)
                offset = len(MAGIC)
                for key, data in sorted(new.items()):
                    codec, stored = _squeeze(data)
                    rows.append((key, offset))
                    self._disk.write(fd, _OBJECT.pack(b"OBJ1", codec, len(data), len(stored), key) + stored)
                    offset += _OBJECT.size + len(stored)
                index = b"".join(_ROW.pack(key, place) for key, place in rows)
                footer = _FOOTER.pack(offset, len(rows), zlib.crc32(index), _END)
                self._disk.write(fd, index + footer)
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
            self._disk.rename(temporary, os.path.join(self._folder, name))
        except OSError:
            self._discard(temporary)
            raise
        self._disk.sync_folder(self._folder)
        self._known.add(name)
        self._places.update((key, (name, place)) for key, place in rows)

    def _discard(self, path: str) -> None:
        try:
            self._disk.unlink(path)
        except OSError:
            return  # the disk is failing; a leftover without a name harms nobody

    def get(self, digest: str) -> bytes:
        """A blob, verified against its digest."""
        key = digest_key(digest)
        with self._mutex, disk_errors(f"reading blob {digest}"):
            place = self._place(key)
            if place is None:
                raise NotFound(f"no blob {digest}", hint="see what is damaged with `turnlog doctor`")
            name, offset = place
            fd = self._disk.open(os.path.join(self._folder, name), os.O_RDONLY)
            try:
                data = self._object(fd, offset, key)
            finally:
                self._disk.close(fd)
        if data is None or hashlib.sha256(data).digest() != key:
            raise Corrupt(
                f"blob {digest} in pack {name} is damaged",
                hint="restore that pack from a backup; see `turnlog doctor`",
            )
        return data

    def _object(self, fd: int, offset: int, key: bytes) -> bytes | None:
        head = self._disk.pread(fd, _OBJECT.size, offset)
        if len(head) != _OBJECT.size:
            return None
        magic, codec, length, stored, named = _OBJECT.unpack(head)
        if magic != b"OBJ1" or named != key or stored > self._disk.fstat(fd).st_size:
            return None
        data = self._disk.pread(fd, stored, offset + _OBJECT.size)
        if codec == _RAW:
            return data
        import zstandard

        try:
            if zstandard.frame_content_size(data) != length:
                return None
            return zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError:
            return None

    def has(self, digest: str) -> bool:
        """Whether a blob is there."""
        with self._mutex, disk_errors(f"looking for blob {digest}"):
            return self._place(digest_key(digest)) is not None

    def _place(self, key: bytes) -> tuple[str, int] | None:
        place = self._places.get(key)
        if place is None:
            alone = pack_name([key])
            names = [alone] if alone not in self._known and self._exists(alone) else self._new_names()
            for name in names:
                self._learn(name)
            place = self._places.get(key)
        return place

    def _exists(self, name: str) -> bool:
        try:
            self._disk.stat(os.path.join(self._folder, name))
        except FileNotFoundError:
            return False
        return True

    def _new_names(self) -> list[str]:
        try:
            names = self._disk.listdir(self._folder)
        except FileNotFoundError:
            return []  # nothing was ever put
        return [name for name in names if name.endswith(_SUFFIX) and name not in self._known]

    def _learn(self, name: str) -> None:
        fd = self._disk.open(os.path.join(self._folder, name), os.O_RDONLY)
        try:
            for key, offset in self._rows(fd):
                self._places.setdefault(key, (name, offset))
        finally:
            self._disk.close(fd)
        self._known.add(name)

    def _rows(self, fd: int) -> Iterator[tuple[bytes, int]]:
        """What a pack holds: from its index, or from the objects themselves should that be damaged."""
        size = self._disk.fstat(fd).st_size
        footer = self._disk.pread(fd, _FOOTER.size, max(0, size - _FOOTER.size))
        if len(footer) == _FOOTER.size:
            start, count, crc, end = _FOOTER.unpack(footer)
            if end == _END and start + count * _ROW.size + _FOOTER.size == size:
                index = self._disk.pread(fd, count * _ROW.size, start)
                if zlib.crc32(index) == crc:
                    yield from _ROW.iter_unpack(index)
                    return
        offset = len(MAGIC)
        while True:
            head = self._disk.pread(fd, _OBJECT.size, offset)
            if len(head) != _OBJECT.size:
                return
            magic, _, _, stored, key = _OBJECT.unpack(head)
            if magic != b"OBJ1":
                return
            yield key, offset
            offset += _OBJECT.size + stored

    def check(self) -> Iterator[str]:
        """The digests of blobs that are damaged. Reads everything."""
        with self._mutex, disk_errors("listing packs"):
            for name in self._new_names():
                self._learn(name)
            keys = list(self._places)
        for key in keys:
            digest = "sha256:" + key.hex()
            try:
                self.get(digest)
            except Corrupt:
                yield digest


def _squeeze(data: bytes) -> tuple[int, bytes]:
    import zstandard

    stored = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
    return (_ZSTD, stored) if len(stored) < len(data) else (_RAW, data)
