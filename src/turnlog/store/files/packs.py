"""Blobs in packs: content-addressed, compressed, deduplicated, and never changed once they have their name.

    pack    := "TURNPACK1\\n" object* index footer
    object  := "OBJ1" codec:u8 length:u64 stored:u64 sha256:32 bytes stored-bytes
    index   := (sha256:32 offset:u64)*          offset of the object
    footer  := index-offset:u64 count:u64 crc32-of-index:u32 "TURNEND1"

Numbers are little-endian; codec 0 is raw, 1 is zstandard, 2 is zstandard without its length in front. A pack is
named by the SHA-256 of its sorted digests, so the pack of a single blob is found without an index, and the objects
describe themselves should the index be lost.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from turnlog.errors import Corrupt, NotFound
from turnlog.log.ids import word
from turnlog.log.payload import digest_key
from turnlog.store.files.disk import Disk, disk_errors, renew_after_fork

MAGIC = b"TURNPACK1\n"
_END = b"TURNEND1"
_OBJECT = struct.Struct("<4sBQQ32s")
_ROW = struct.Struct("<32sQ")
_FOOTER = struct.Struct("<QQI8s")
_RAW, _ZSTD, _STREAM = 0, 1, 2
_PIECE = 1 << 20
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
        self._named: set[str] = set()
        """Packs whose names are on the disk: whoever wrote one may have died before that."""
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process: another thread of the parent may have had the lock."""
        self._mutex = threading.Lock()

    def put(self, blobs: dict[str, bytes]) -> None:
        """Keep these, in one new pack, synced and under its name when this returns."""
        for digest in blobs:
            digest_key(digest)
        with self.writer() as writer:
            for data in blobs.values():
                writer.add(data)

    def writer(self, *, anew: bool = False) -> PackWriter:
        """A new pack to fill: `with packs.writer() as writer`. It is kept when the block ends without an error.

        `anew`: also with what other packs have.
        """
        return PackWriter(self, self._disk, self._folder, anew=anew)

    def names(self) -> list[str]:
        """Every pack."""
        try:
            names = self._disk.listdir(self._folder)
        except FileNotFoundError:
            return []  # nothing was ever kept here
        return [name for name in names if name.endswith(_SUFFIX)]

    def learn(self) -> dict[bytes, tuple[str, int]]:
        """Where every blob is that has its name by now, by SHA-256."""
        with self._mutex, disk_errors("listing packs"):
            names = set(self.names())
            gone = self._known - names
            if gone:
                self._places = {key: place for key, place in self._places.items() if place[0] not in gone}
                self._known &= names
            for name in names - self._known:
                self._learn(name)
            return self._places

    def make_sure(self) -> None:
        """Every pack that we know of has its name on the disk."""
        with self._mutex, disk_errors("syncing the names of packs"):
            if not self._known <= self._named:
                self._disk.sync_folder(self._folder)
                self._named = set(self._known)

    def took(self, name: str, rows: list[tuple[bytes, int]]) -> None:
        """A new pack has its name."""
        with self._mutex:
            self._known.add(name)
            self._named.add(name)
            self._places.update((key, (name, place)) for key, place in rows)

    def get(self, digest: str) -> bytes:
        """A blob, verified against its digest."""
        key = digest_key(digest)
        with self._mutex, disk_errors(f"reading blob {digest}"):
            place = self._place(key)
            if place is None:
                raise NotFound(f"no blob {digest}", hint="see what is damaged with `turnlog doctor`")
            name, offset = place
            fd = self._open(name)
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
            if codec == _STREAM:
                return zstandard.ZstdDecompressor().decompress(data, max_output_size=length)
            if zstandard.frame_content_size(data) != length:
                return None
            return zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError:
            return None

    def stream(self, digest: str) -> Iterator[bytes]:
        """A blob piece by piece, verified when its end is reached."""
        key = digest_key(digest)
        with disk_errors(f"reading blob {digest}"):
            with self._mutex:
                place = self._place(key)
            if place is None:
                raise NotFound(f"no blob {digest}", hint="see what is damaged with `turnlog doctor`")
            fd = self._open(place[0])
            try:
                hashed = hashlib.sha256()
                for piece in self._unpacked(fd, place[1], key):
                    hashed.update(piece)
                    yield piece
            finally:
                self._disk.close(fd)
        if hashed.digest() != key:
            raise Corrupt(f"blob {digest} in pack {place[0]} is damaged", hint="see `turnlog doctor`")

    def _unpacked(self, fd: int, offset: int, key: bytes) -> Iterator[bytes]:
        head = self._disk.pread(fd, _OBJECT.size, offset)
        if len(head) != _OBJECT.size:
            return
        magic, codec, _, stored, named = _OBJECT.unpack(head)
        if magic != b"OBJ1" or named != key:
            return
        import zstandard

        unpacker = None if codec == _RAW else zstandard.ZstdDecompressor().decompressobj()
        position, end = offset + _OBJECT.size, offset + _OBJECT.size + stored
        try:
            while position < end:
                piece = self._disk.pread(fd, min(_PIECE, end - position), position)
                if not piece:
                    return
                position += len(piece)
                yield piece if unpacker is None else unpacker.decompress(piece)
        except zstandard.ZstdError:
            return  # what is missing shows in the digest

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

    def _open(self, name: str) -> int:
        return self._disk.open(os.path.join(self._folder, name), os.O_RDONLY)

    def _exists(self, name: str) -> bool:
        try:
            self._disk.stat(os.path.join(self._folder, name))
        except FileNotFoundError:
            return False
        return True

    def _new_names(self) -> list[str]:
        return [name for name in self.names() if name not in self._known]

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
        while offset < size:
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
        for key in list(self.learn()):
            digest = "sha256:" + key.hex()
            try:
                self.get(digest)
            except Corrupt:
                yield digest


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
        self._zstd = zstandard.ZstdCompressor(level=_LEVEL)

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
            codec = _ZSTD
            if len(stored) >= len(data):
                codec, stored = _RAW, data
            self._rows[key] = self._place()
            self._push(_OBJECT.pack(b"OBJ1", codec, len(data), len(stored), key))
            self._push(stored)
        return "sha256:" + hashed.hexdigest()

    def add_file(self, fd: int) -> str:
        """Keep the rest of an open file, piece by piece; returns its digest."""
        with disk_errors("writing a file into a pack"):
            start = self._place()
            self._flush()
            hashed, length, stored = hashlib.sha256(), 0, 0
            squeezer: Any = self._zstd.chunker(chunk_size=_PIECE)
            self._disk.write(self._fd, bytes(_OBJECT.size))
            while piece := os.read(fd, _PIECE):
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
                head = _OBJECT.pack(b"OBJ1", _STREAM, length, stored, key)
                self._disk.pwrite(self._fd, head, start)
                self._rows[key] = start
                self._end = start + _OBJECT.size + stored
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
        if self._buffered > _PIECE:
            with disk_errors("writing a pack"):
                self._flush()

    def _flush(self) -> None:
        if self._buffer:
            data = b"".join(self._buffer)
            self._buffer, self._buffered = [], 0
            self._disk.write(self._fd, data)

    def _finish(self) -> None:
        rows = sorted(self._rows.items())
        index = b"".join(_ROW.pack(key, place) for key, place in rows)
        start = self._end
        self._push(index + _FOOTER.pack(start, len(rows), zlib.crc32(index), _END))
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
