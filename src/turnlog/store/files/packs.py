"""Finding and reading blobs in packs, verified. The format is in `packformat`."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator
from typing import Any

from turnlog.errors import Corrupt, NotFound, Unsupported
from turnlog.log import zstd
from turnlog.log.digest import sha256
from turnlog.log.payload import digest_key, digest_of_key
from turnlog.log.startup import NamedTuple
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.packblock import BLOCK, Block, decode_block
from turnlog.store.files.packformat import END, FOOTER, MAGIC, NEWER, OBJECT, PIECE, RAW, ROW, SUFFIX, pack_name
from turnlog.store.forked import renew_after_fork

_MOST_BLOCKS = 32
"""The most decompressed blocks in the cache."""
_SINGLE = b"OBJ1"
"""The kind of an object that holds one blob, and no block."""
Location = tuple[str, int]
"""The pack of a blob, and the offset of its object."""


class _Footer(NamedTuple):
    """The end of a pack."""

    start: int
    """The offset of the index."""
    blobs: int
    crc: int
    end: bytes


class _ObjectHead(NamedTuple):
    """What comes before the stored bytes of an object."""

    kind: bytes
    codec: int
    length: int
    stored: int
    digest: bytes
    """The SHA-256 of the blob, or of a block's table."""


class _Window:
    """A part of a file, as a file object for reading."""

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
        self._locations: dict[bytes, Location] = {}
        self._blocks: dict[tuple[str, int], Block] = {}
        """A cache of decompressed blocks: a reader of one blob often wants its neighbours next."""
        self._known: set[str] = set()
        self._newer = ""
        """A pack of a newer version, which may hold blobs that are not found; "" for none."""
        self._named: set[str] = set()
        """Packs whose names are synced: the writer of a pack may have died before it synced the name."""
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Replace the lock in a child process: another thread of the parent may have held it."""
        self._mutex = threading.Lock()

    def names(self) -> list[str]:
        """Return the names of all packs."""
        try:
            names = self.disk.listdir(self.folder)
        except FileNotFoundError:
            return []  # no blob was ever stored here
        return [name for name in names if name.endswith(SUFFIX)]

    @property
    def known(self) -> frozenset[str]:
        """The names of packs whose content is known."""
        with self._mutex:
            return frozenset(self._known)

    def learn(self, listed: frozenset[str] | None = None) -> dict[bytes, Location]:
        """Return the pack and offset of every blob, by SHA-256.

        `listed` are packs that the caller listed; it has locked out collections since then.
        """
        with self._mutex, disk_errors("listing packs"):
            self._learn_all(listed)
            return self._locations

    def _learn_all(self, listed: frozenset[str] | None = None) -> None:
        while True:
            names = set(self.names()) if listed is None or self._known - listed else listed
            if self._known - names:
                # Packs were collected. Their blobs may be in packs that we already read: read all of them again.
                self._locations, self._known, self._newer = {}, set(), ""
                self._named &= names
            try:
                for name in names - self._known:
                    self._learn(name)
                return
            except FileNotFoundError:
                listed = None  # collected since it was listed

    def sync_names(self) -> None:
        """Sync the names of all packs that we know of."""
        with self._mutex, disk_errors("syncing the names of packs"):
            if not self._known <= self._named:
                self.disk.sync_folder(self.folder)
                self._named = set(self._known)

    def register(self, name: str, rows: list[tuple[bytes, int]]) -> None:
        """Add a new pack. Its name, and those of all known packs, are on the disk when this returns."""
        before = set(self._known)
        self.disk.sync_folder(self.folder)
        with self._mutex:
            self._locations.update((key, (name, offset)) for key, offset in rows)
            self._named |= before | {name}
            self._known.add(name)  # last: a known pack is not read again

    def get(self, digest: str) -> bytes:
        """Return a blob, verified against its digest."""
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
            head = self._head(fd, offset)
            if head.kind != BLOCK:
                is_wanted = head.kind == _SINGLE and head.digest == key
                return self._stored(fd, offset, head) if is_wanted else None
            block = decode_block(self._stored(fd, offset, head) or b"", head.digest) or {}
            if len(self._blocks) >= _MOST_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[name, offset] = block
        return block.get(key)

    def _head(self, fd: int, offset: int) -> _ObjectHead:
        """Return the head of an object; one with an invalid kind if the file ends before it does."""
        head = self.disk.pread(fd, OBJECT.size, offset)
        return _ObjectHead(*OBJECT.unpack(head if len(head) == OBJECT.size else bytes(OBJECT.size)))

    def _stored(self, fd: int, offset: int, head: _ObjectHead) -> bytes | None:
        """Return the content of an object; None if it cannot be what its head says."""
        if head.stored > self.disk.fstat(fd).st_size or (head.codec == RAW and head.length != head.stored):
            return None
        data = self.disk.pread(fd, head.stored, offset + OBJECT.size)
        if head.codec == RAW:
            return data
        content = zstd.unpacked(data, head.length)
        return content if content is not None and len(content) == head.length else None

    def stream(self, digest: str) -> Iterator[bytes]:
        """Yield a blob piece by piece; it is verified at the end."""
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
        head = self._head(fd, offset)
        if head.kind != _SINGLE or head.digest != key:
            return
        window = _Window(self.disk, fd, offset + OBJECT.size, head.stored)
        # A reader, not a decompressor fed with pieces: a small piece may unpack to gigabytes at once.
        unpacker: Any = zstd.decompressor()
        source = window if head.codec == RAW else unpacker.stream_reader(window, read_size=PIECE)
        length = head.length
        try:
            while length > 0 and (piece := source.read(min(PIECE, length))):
                length -= len(piece)
                yield piece
        except zstd.damage():
            return  # missing data is detected by the digest

    def has(self, digest: str) -> bool:
        """Whether a blob is stored."""
        with self._mutex, disk_errors(f"looking for blob {digest}"):
            key = digest_key(digest)
            location = self._locate(key)
            if location is not None and not self._exists(location[0]):
                self._learn_all()
                location = self._locate(key)
            if location is None:
                self.refuse_newer()
            return location is not None

    def refuse_newer(self) -> None:
        """Raise `Unsupported` if a missing blob may be in a pack of a newer version."""
        if self._newer:
            raise Unsupported(
                f"pack {self._newer} was written by a newer Turnlog", hint="upgrade Turnlog; nothing is damaged"
            )

    def _find(self, digest: str, key: bytes) -> tuple[int, str, int]:
        """Open a blob's pack. Returns the descriptor, the pack's name, and the blob's offset."""
        location = self._locate(key)
        if location is not None:
            try:
                return self._open(location[0]), *location
            except FileNotFoundError:
                self._learn_all()  # collected: needed blobs are in another pack by now
                location = self._locate(key)
        if location is None:
            self.refuse_newer()
            raise NotFound(f"no blob {digest}", hint="see what is damaged with `turnlog doctor`")
        return self._open(location[0]), *location

    def _locate(self, key: bytes) -> Location | None:
        location = self._locations.get(key)
        if location is None:
            alone = pack_name([key])
            names = (
                [alone]
                if alone not in self._known and self._exists(alone)
                else [name for name in self.names() if name not in self._known]
            )
            try:
                for name in names:
                    self._learn(name)
            except FileNotFoundError:  # collected since it was listed: needed blobs are in another pack by now
                self._learn_all()
            location = self._locations.get(key)
        return location

    def _open(self, name: str) -> int:
        return self.disk.open(os.path.join(self.folder, name), os.O_RDONLY)

    def _exists(self, name: str) -> bool:
        return self.disk.exists(os.path.join(self.folder, name))

    def _learn(self, name: str) -> None:
        fd = self._open(name)
        try:
            footer = self._footer(fd)
            if footer.end in NEWER:
                self._newer = name
            else:
                for key, offset in self._rows(fd, footer):
                    self._locations.setdefault(key, (name, offset))
        finally:
            self.disk.close(fd)
        self._known.add(name)

    def _rows(self, fd: int, footer: _Footer) -> Iterator[tuple[bytes, int]]:
        """Yield the content of a pack: from its index, or from the objects themselves if the index is damaged."""
        index = self._index(fd, footer)
        if index is not None:
            yield from ROW.iter_unpack(index)
            return
        size = self.disk.fstat(fd).st_size
        offset = len(MAGIC)
        while offset < size:
            head = self._head(fd, offset)
            if head.kind == BLOCK:
                block = decode_block(self._stored(fd, offset, head) or b"", head.digest)
                yield from ((key, offset) for key in block or {})
            elif head.kind == _SINGLE:
                yield head.digest, offset
            else:
                return
            offset += OBJECT.size + head.stored

    def _index(self, fd: int, footer: _Footer) -> bytes | None:
        """Return the index of a pack; None if it is damaged."""
        size = self.disk.fstat(fd).st_size
        if footer.end != END or footer.start + footer.blobs * ROW.size + FOOTER.size != size:
            return None
        index = self.disk.pread(fd, footer.blobs * ROW.size, footer.start)
        return index if zlib.crc32(index) == footer.crc else None

    def _footer(self, fd: int) -> _Footer:
        size = self.disk.fstat(fd).st_size
        footer = self.disk.pread(fd, FOOTER.size, max(0, size - FOOTER.size))
        return _Footer(*FOOTER.unpack(footer if len(footer) == FOOTER.size else bytes(FOOTER.size)))

    def objects(self, name: str) -> list[tuple[int, bytes]]:
        """Return offset and key of every blob in a pack; an empty list if its index is damaged."""
        fd = self._open(name)
        try:
            return sorted((offset, key) for key, offset in ROW.iter_unpack(self._index(fd, self._footer(fd)) or b""))
        finally:
            self.disk.close(fd)

    def check(self) -> Iterator[str]:
        """Yield the digests of damaged blobs. Reads every blob."""
        for key in list(self.learn()):
            digest = digest_of_key(key)
            try:
                self.get(digest)
            except Corrupt:
                yield digest
