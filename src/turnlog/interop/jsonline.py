"""The lines of a file, also of a compressed one, and whole files: as much as is allowed of each."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from msgspec import Struct

from turnlog.interop.folder import at_once
from turnlog.interop.problem import Problem
from turnlog.log import zstd

MAX_LINE = 256 << 20
UNPACKED, RATIO = 1 << 20, 200
"""So many bytes may come out of any compressed file, and so many more for each byte of it."""
_CHUNK = 1 << 20


class JsonLine(Struct, frozen=True, gc=False):
    """One line of a file without its newline. One over the limit has a problem and no data."""

    offset: int
    length: int
    """Without the newline, also where the data was left out."""
    data: bytes
    is_ended: bool = True
    """Whether a newline followed."""
    problem: Problem | None = None


def lines(path: str, *, limit: int = MAX_LINE, start: int = 0) -> Iterator[JsonLine]:
    """The lines of a file, which end at newlines and at nothing else. Never more than one of them in memory.

    A file with `.zst` at the end of its name is decompressed on the way, up to what may come out of one of its size:
    the last line says so where more would.
    """
    with open(path, "rb", opener=at_once) as raw:
        bounds = _Unpacked(raw) if path.endswith(".zst") else None
        file = raw if bounds is None else cast("BinaryIO", io.BufferedReader(bounds, _CHUNK))
        offset = _skipped(file, start) if bounds is not None else file.seek(start)
        for line in _lines(file, offset, limit):
            offset = line.offset + line.length + line.is_ended
            yield line
        if bounds is not None and bounds.problem is not None:
            yield JsonLine(offset, 0, b"", False, bounds.problem)


def _skipped(file: BinaryIO, start: int) -> int:
    """Read on to an offset, in a file that cannot be sought; how far that went."""
    offset = 0
    while offset < start and (data := file.read(min(start - offset, _CHUNK))):
        offset += len(data)
    return offset


def _lines(file: BinaryIO, offset: int, limit: int) -> Iterator[JsonLine]:
    while head := file.readline(limit + 1):
        if head.endswith(b"\n"):
            yield JsonLine(offset, len(head) - 1, head[:-1])
            offset += len(head)
            continue
        if len(head) <= limit:
            yield JsonLine(offset, len(head), head, False)
            return
        length, is_ended = len(head), False
        del head
        while rest := file.readline(_CHUNK):
            is_ended = rest.endswith(b"\n")
            length += len(rest) - is_ended
            if is_ended:
                break
        problem = Problem(f"a line of {length} bytes, more than {limit}", offset=offset, length=length)
        yield JsonLine(offset, length, b"", is_ended, problem)
        offset += length + is_ended


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, up to a multiple of its size: a few bytes can unpack to anything."""

    def __init__(self, raw: BinaryIO) -> None:
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        self.problem: Problem | None = None
        self._most = self._left = UNPACKED + RATIO * size
        self._reader: Any = zstd.decompressor().stream_reader(raw, read_across_frames=True)
        self._damage = zstd.damage()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            with memoryview(buffer) as view:
                taken = self._reader.readinto(view[: min(len(view), self._left + 1)])
        except self._damage as error:
            self.problem = Problem(f"it cannot be unpacked any further: {error}", offset=self._most - self._left)
            return 0
        self._left -= taken
        if self._left >= 0:
            return taken
        self.problem = Problem(f"more than {self._most} bytes come out of it: the rest was not read", offset=self._most)
        return 0


def document(path: str, *, limit: int = MAX_LINE) -> tuple[bytes, list[Problem]]:
    """A whole file, or as much of it as is allowed."""
    with open(path, "rb", opener=at_once) as file:
        data = file.read(limit + 1)
    if len(data) <= limit:
        return data, []
    return data[:limit], [Problem(f"more than {limit} bytes: the rest was not read", offset=limit)]
