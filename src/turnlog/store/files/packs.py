"""Blobs in packs: where they are, and reading them, verified. The format is in `packformat`."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator
from typing import Any

from turnlog.errors import Corrupt, NotFound, Unsupported
from turnlog.log import zstd
from turnlog.log.digest import sha256
from turnlog.log.payload import digest_key
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.packblock import BLOCK, Block, decode_block
from turnlog.store.files.packformat import END, FOOTER, MAGIC, NEWER, OBJECT, PIECE, RAW, ROW, SUFFIX, pack_name
from turnlog.store.forked import renew_after_fork

_MOST_BLOCKS = 32
_Footer = tuple[int, int, int, bytes]


class _Window:
    """A stretch of a file, to be read."""

    def __init__(self, disk: Disk, fd: int, start: int, length: int) -> None:
        self._disk = disk
        self._fd = fd
        self._at = start
        self._end = start + length

    def read(self, size: int = -1) -> bytes:
        wanted = self._end - self._at if size < 0 else min(size, self._end - self._at)
        data = self._disk.pread(self._fd, wanted, self._at) if wanted > 0 else b""
        self._at += len(data)
        return data


class Packs:
    """All packs in one folder."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self.disk = disk
        self.folder = folder
        self._mutex = threading.Lock()
        self._places: dict[bytes, tuple[str, int]] = {}
        self._blocks: dict[tuple[str, int], Block] = {}
        """Those unpacked last: who wants one blob of a block soon wants its neighbour."""
        self._known: set[str] = set()
        self._newer = ""
        """A pack that a newer version wrote: what is not found may be in there."""
        self._named: set[str] = set()
        """Packs whose names are on the disk: whoever wrote one may have died before that."""
        self.prepared = ""
        """A pack that was only just written, and verified, for a collection that is about to come."""
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process: another thread of the parent may have had the lock."""
        self._mutex = threading.Lock()

    def names(self) -> list[str]:
        """Every pack."""
        try:
            names = self.disk.listdir(self.folder)
        except FileNotFoundError:
            return []  # nothing was ever kept here
        return [name for name in names if name.endswith(SUFFIX)]

    @property
    def known(self) -> frozenset[str]:
        """Those of which it is known what is in them."""
        with self._mutex:
            return frozenset(self._known)

    def learn(self, listed: frozenset[str] | None = None) -> dict[bytes, tuple[str, int]]:
        """Where every blob is that has its name by now, by SHA-256.

        `listed` are the packs that somebody saw who has kept out whoever collects since.
        """
        with self._mutex, disk_errors("listing packs"):
            self._learn_all(listed)
            return self._places

    def _learn_all(self, listed: frozenset[str] | None = None) -> None:
        while True:
            names = set(self.names()) if listed is None or self._known - listed else listed
            if self._known - names:
                # Somebody collected. What went with a pack may be in one that we knew already: look at all of them.
                self._places, self._known, self._newer = {}, set(), ""
                self._named &= names
            try:
                for name in names - self._known:
                    self._learn(name)
                return
            except FileNotFoundError:
                listed = None  # collected since it was listed

    def make_sure(self) -> None:
        """Every pack that we know of has its name on the disk."""
        with self._mutex, disk_errors("syncing the names of packs"):
            if not self._known <= self._named:
                self.disk.sync_folder(self.folder)
                self._named = set(self._known)

    def take(self, name: str, rows: list[tuple[bytes, int]]) -> None:
        """A new pack got its name, which is on the disk when this returns, with those of all that we know of."""
        before = set(self._known)
        self.disk.sync_folder(self.folder)
        with self._mutex:
            self._places.update((key, (name, location)) for key, location in rows)
            self._named |= before | {name}
            self._known.add(name)  # last: a pack that is known is not looked at again

    def get(self, digest: str) -> bytes:
        """A blob, verified against its digest."""
        key = digest_key(digest)
        with self._mutex, disk_errors(f"reading blob {digest}"):
            fd, name, offset = self._find(digest, key)
            try:
                data = self._object(fd, name, offset, key)
            finally:
                self.disk.close(fd)
        if data is None or sha256(data).digest() != key:
            raise Corrupt(
                f"blob {digest} in pack {name} is damaged",
                hint="restore that pack from a backup; see `turnlog doctor`",
            )
        return data

    def _object(self, fd: int, name: str, offset: int, key: bytes) -> bytes | None:
        block = self._blocks.get((name, offset))
        if block is None:
            magic, codec, length, stored, named = self._head(fd, offset)
            if magic != BLOCK:
                is_it = magic == b"OBJ1" and named == key
                return self._stored(fd, offset, codec, length, stored) if is_it else None
            block = decode_block(self._stored(fd, offset, codec, length, stored) or b"", named) or {}
            if len(self._blocks) >= _MOST_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[name, offset] = block
        return block.get(key)

    def _head(self, fd: int, offset: int) -> tuple[Any, ...]:
        """The head of an object; one that is of no kind where the file ends before it does."""
        head = self.disk.pread(fd, OBJECT.size, offset)
        return OBJECT.unpack(head if len(head) == OBJECT.size else bytes(OBJECT.size))

    def _stored(self, fd: int, offset: int, codec: int, length: int, stored: int) -> bytes | None:
        if stored > self.disk.fstat(fd).st_size or (codec == RAW and length != stored):
            return None
        data = self.disk.pread(fd, stored, offset + OBJECT.size)
        if codec == RAW:
            return data
        content = zstd.unpacked(data, length)
        return content if content is not None and len(content) == length else None

    def stream(self, digest: str) -> Iterator[bytes]:
        """A blob piece by piece, verified when its end is reached."""
        key = digest_key(digest)
        with disk_errors(f"reading blob {digest}"):
            with self._mutex:
                fd, name, offset = self._find(digest, key)
            try:
                hashed = sha256()
                if self.disk.pread(fd, len(BLOCK), offset) == BLOCK:
                    with self._mutex:
                        pieces = iter([self._object(fd, name, offset, key) or b""])
                else:
                    pieces = self._unpacked(fd, offset, key)
                for piece in pieces:
                    hashed.update(piece)
                    yield piece
            finally:
                self.disk.close(fd)
        if hashed.digest() != key:
            raise Corrupt(f"blob {digest} in pack {name} is damaged", hint="see `turnlog doctor`")

    def _unpacked(self, fd: int, offset: int, key: bytes) -> Iterator[bytes]:
        magic, codec, length, stored, named = self._head(fd, offset)
        if magic != b"OBJ1" or named != key:
            return
        window = _Window(self.disk, fd, offset + OBJECT.size, stored)
        # A reader, not a decompressor fed with pieces: a small piece may unpack to gigabytes at once.
        unpacker: Any = zstd.decompressor()
        source = window if codec == RAW else unpacker.stream_reader(window, read_size=PIECE)
        try:
            while length > 0 and (piece := source.read(min(PIECE, length))):
                length -= len(piece)
                yield piece
        except zstd.damage():
            return  # what is missing shows in the digest

    def has(self, digest: str) -> bool:
        """Whether a blob is there."""
        with self._mutex, disk_errors(f"looking for blob {digest}"):
            key = digest_key(digest)
            place = self._place(key)
            if place is not None and not self._exists(place[0]):
                self._learn_all()
                place = self._place(key)
            if place is None:
                self.refuse_newer()
            return place is not None

    def refuse_newer(self) -> None:
        """Something is not there: where it may be in a pack that only a newer version can read, say so."""
        if self._newer:
            raise Unsupported(
                f"pack {self._newer} was written by a newer Turnlog", hint="upgrade Turnlog; nothing is damaged"
            )

    def _find(self, digest: str, key: bytes) -> tuple[int, str, int]:
        """A blob's pack, open, with its name, and where the blob is in it."""
        place = self._place(key)
        if place is not None:
            try:
                return self._open(place[0]), *place
            except FileNotFoundError:
                self._learn_all()  # somebody collected: what is needed is in another pack by now
                place = self._place(key)
        if place is None:
            self.refuse_newer()
            raise NotFound(f"no blob {digest}", hint="see what is damaged with `turnlog doctor`")
        return self._open(place[0]), *place

    def _place(self, key: bytes) -> tuple[str, int] | None:
        place = self._places.get(key)
        if place is None:
            alone = pack_name([key])
            names = (
                [alone]
                if alone not in self._known and self._exists(alone)
                else [name for name in self.names() if name not in self._known]
            )
            try:
                for name in names:
                    self._learn(name)
            except FileNotFoundError:  # collected since it was listed: what is needed is in another by now
                self._learn_all()
            place = self._places.get(key)
        return place

    def _open(self, name: str) -> int:
        return self.disk.open(os.path.join(self.folder, name), os.O_RDONLY)

    def _exists(self, name: str) -> bool:
        return self.disk.exists(os.path.join(self.folder, name))

    def _learn(self, name: str) -> None:
        fd = self._open(name)
        try:
            footer = self._footer(fd)
            if footer[-1] in NEWER:
                self._newer = name
            else:
                for key, offset in self._rows(fd, footer):
                    self._places.setdefault(key, (name, offset))
        finally:
            self.disk.close(fd)
        self._known.add(name)

    def _rows(self, fd: int, footer: _Footer) -> Iterator[tuple[bytes, int]]:
        """What a pack holds: from its index, or from the objects themselves should that be damaged."""
        index = self._index(fd, footer)
        if index is not None:
            yield from ROW.iter_unpack(index)
            return
        size = self.disk.fstat(fd).st_size
        offset = len(MAGIC)
        while offset < size:
            magic, codec, length, stored, key = self._head(fd, offset)
            if magic == BLOCK:
                block = decode_block(self._stored(fd, offset, codec, length, stored) or b"", key)
                yield from ((inner, offset) for inner in block or {})
            elif magic == b"OBJ1":
                yield key, offset
            else:
                return
            offset += OBJECT.size + stored

    def _index(self, fd: int, footer: _Footer) -> bytes | None:
        """The index of a pack; None where it is damaged."""
        size = self.disk.fstat(fd).st_size
        start, count, crc, end = footer
        if end != END or start + count * ROW.size + FOOTER.size != size:
            return None
        index = self.disk.pread(fd, count * ROW.size, start)
        return index if zlib.crc32(index) == crc else None

    def _footer(self, fd: int) -> _Footer:
        size = self.disk.fstat(fd).st_size
        footer = self.disk.pread(fd, FOOTER.size, max(0, size - FOOTER.size))
        return FOOTER.unpack(footer if len(footer) == FOOTER.size else bytes(FOOTER.size))

    def objects(self, name: str) -> list[tuple[int, bytes]]:
        """All that a pack holds, where and what; nothing if its index is damaged and nobody can say."""
        fd = self._open(name)
        try:
            return sorted((offset, key) for key, offset in ROW.iter_unpack(self._index(fd, self._footer(fd)) or b""))
        finally:
            self.disk.close(fd)

    def check(self) -> Iterator[str]:
        """The digests of blobs that are damaged. Reads everything."""
        for key in list(self.learn()):
            digest = "sha256:" + key.hex()
            try:
                self.get(digest)
            except Corrupt:
                yield digest
