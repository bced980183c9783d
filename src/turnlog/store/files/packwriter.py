"""One pack on its way: filled piece by piece, and given its name when it is whole and on the disk."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import TracebackType
from typing import Any

from turnlog.log.digest import sha256
from turnlog.log.ids import word
from turnlog.log.zstd import compressor
from turnlog.store import OpenFile
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.packblock import ANEW_BYTES, ANEW_SMALL, BLOCK_BYTES, SMALL, Block, Press
from turnlog.store.files.packformat import END, FOOTER, LEVEL, MAGIC, OBJECT, PIECE, RAW, ROW, STREAM, ZSTD, pack_name
from turnlog.store.files.packs import Packs


class PackWriter:
    """One pack on its way. Nothing of it can be seen until it is whole, synced and has its name."""

    def __init__(self, packs: Packs, *, anew: bool = False, progress: Callable[[int], None] | None = None) -> None:
        """`anew`: also with what other packs have. `progress` as in `Blobs.add`."""
        self.name = ""

        self._packs = packs
        self._disk = packs.disk
        self._progress = progress
        self._temporary = os.path.join(packs.folder, f".new-{word(16)}")
        self._fd = -1
        self._rows: dict[bytes, int] = {}
        self._places: dict[bytes, tuple[str, int]] | None = {} if anew else None
        self._listed: frozenset[str] | None = None
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._block: Block = {}
        """Small blobs that are on their way together."""
        self._blocked = 0
        self._small, self._full = (ANEW_SMALL, ANEW_BYTES) if anew else (SMALL, BLOCK_BYTES)
        self._press = Press()
        self._end = 0
        """Where the next object goes, what is buffered included."""
        self._zstd = compressor(LEVEL)

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and (self._rows or self._block or self._press.count):
                with disk_errors(f"writing a pack of {len(self._rows)} blobs"):
                    self._finish()
            if kind is None:
                self._packs.make_sure()  # something may have been left out because another one has it
            self._abandon()
        except BaseException:
            self._abandon()
            raise

    def __del__(self) -> None:
        """Where an interrupt came up before `__exit__` could do anything."""
        if hasattr(self, "_zstd"):
            self._abandon()

    def __call__(self, content: bytes | OpenFile) -> str:
        """See `Blobs.add`. Errors of an open file are the caller's, as they are: nothing of it is kept then."""
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
                self._place()
                self._block[key] = data
                self._blocked += len(data)
                if self._blocked >= self._full:
                    self._close_block()
        return "sha256:" + hashed.hexdigest()

    def _add_alone(self, key: bytes, data: bytes) -> None:
        stored = self._zstd.compress(data)
        codec = ZSTD
        if len(stored) >= len(data):
            codec, stored = RAW, data
        self._rows[key] = self._place()
        self._push(OBJECT.pack(b"OBJ1", codec, len(data), len(stored), key))
        self._push(stored)

    def _close_block(self) -> None:
        blobs, self._block, self._blocked = self._block, {}, 0
        if len(blobs) == 1:
            self._add_alone(*blobs.popitem())
        elif blobs:
            self._press.put(blobs)
            self._write_blocks(wait=False)

    def _write_blocks(self, *, wait: bool) -> None:
        for keys, data in self._press.take(wait=wait):
            self._rows.update(dict.fromkeys(keys, self._place()))
            self._push(data)

    def _add_pieces(self, pieces: Iterator[bytes]) -> str:
        with disk_errors("writing a file into a pack"):
            start = self._place()
            self._flush()
            self._disk.write(self._fd, bytes(OBJECT.size))
        hashed, length, stored = sha256(), 0, 0
        squeezer: Any = self._zstd.chunker(chunk_size=PIECE)
        try:
            for piece in pieces:
                hashed.update(piece)
                length += len(piece)
                stored += self._write_all(squeezer.compress(piece))
            stored += self._write_all(squeezer.finish())
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
        return "sha256:" + hashed.hexdigest()

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
        """Keep a blob that is in another pack, verified: damage is not carried over. A big one goes piece by piece."""
        digest = "sha256:" + key.hex()
        pieces = self._packs.stream(digest)
        first = next(pieces, b"")
        second = next(pieces, None)
        if second is None:
            self._add(first)
        else:
            self._add_pieces(chain((first, second), pieces))

    @property
    def size_bytes(self) -> int:
        """How much it takes by now; what the store had already takes nothing."""
        count = len(self._rows) + len(self._block) + self._press.count
        waiting = self._blocked + self._press.size  # before they are compressed
        return self._end + waiting + count * ROW.size + FOOTER.size if count else 0

    def packs(self) -> frozenset[str]:
        """See `ListPacks`."""
        if self._listed is None:
            with disk_errors("listing packs"):
                self._listed = frozenset(self._packs.names())
        # Where something was looked for, it may be in a pack that another thread has added since.
        return self._listed if self._places is None else self._listed | self._packs.known

    def _has(self, key: bytes) -> bool:
        if self._places is None:
            # Once: what others add meanwhile is at worst kept twice.
            self._places = self._packs.learn(self._listed)
        return key in self._rows or key in self._block or key in self._press or key in self._places

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
        self._close_block()
        self._write_blocks(wait=True)
        rows = sorted(self._rows.items())
        index = b"".join(ROW.pack(key, place) for key, place in rows)
        start = self._end
        self._push(index + FOOTER.pack(start, len(rows), zlib.crc32(index), END))
        self._flush()
        self._disk.sync(self._fd)
        self.name = pack_name(list(self._rows))
        self._disk.rename(self._temporary, os.path.join(self._packs.folder, self.name))
        self._temporary = ""
        self._packs.take(self.name, rows)

    def _abandon(self) -> None:
        """Let go of everything; what has its name by now stays. Done again, it does nothing."""
        self._press.close()
        # Forgotten before it is closed, and closed once: its number may be another file's by then.
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._disk.close(fd)
        temporary, self._temporary = self._temporary, ""
        if temporary:
            self._disk.discard(temporary)
