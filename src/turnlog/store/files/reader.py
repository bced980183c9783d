"""Log files that are read as a whole, to be examined or replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.errors import Corrupt, NotFound
from turnlog.store.files.disk import Disk, Held
from turnlog.store.files.lines import Read

STEP = 1 << 20
"""The most bytes that are read or written at once."""


def reader_of(disk: Disk, fd: int) -> Read:
    """Return a function that reads an open file."""

    def read(length: int, offset: int) -> bytes:
        return disk.pread(fd, length, offset)

    return read


def open_locked(disk: Disk, path: str) -> Held:
    """Open the file that has this name now, with the writer's lock."""
    while True:
        held = disk.hold(path)
        try:
            if os.path.samestat(disk.fstat(held.fileno()), disk.stat(path)):
                return held
        except FileNotFoundError:
            held.close()
            raise NotFound(f"{path} was deleted or moved", hint="see `turnlog ls`") from None
        except BaseException:
            held.close()
            raise
        held.close()  # it was replaced while we waited


def pieces(read: Read, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes from `start` to `end`. Raises `Corrupt` if the file is shorter."""
    position = start
    while position < end:
        piece = read(min(STEP, end - position), position)
        if not piece:
            raise Corrupt("the log became shorter while it was rewritten", hint="nothing was changed; try again")
        position += len(piece)
        yield piece
