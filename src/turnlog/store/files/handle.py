"""The descriptor of one file: opened when it is needed, left behind when it cannot be trusted any more."""

from __future__ import annotations

import errno
import os

from turnlog.errors import Unavailable
from turnlog.store.files.disk import Disk, Held
from turnlog.store.forked import renew_after_fork


class ReadingHandle(Held):
    """A second descriptor, to read from at leisure: it carries the lock as well while the first one has it."""

    def __init__(self, disk: Disk, fd: int) -> None:
        super().__init__(os.dup(fd))
        self._disk = disk
        renew_after_fork(self)

    def read_at(self, length: int, offset: int) -> bytes:
        try:
            fd = self.fileno()
        except ValueError:
            raise Unavailable("this reading was begun in another process", hint="begin it again here") from None
        return self._disk.pread(fd, length, offset)


class FileHandle:
    """Reads and writes go to `fd`; -1 where nothing is open."""

    def __init__(self, disk: Disk, path: str, *, read_only: bool, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.identity = (0, 0)
        """Which file it is, whatever its name: also known while nothing is open."""
        self._disk = disk
        self._read_only = read_only
        self.is_writable = fd >= 0
        """Whether what is open may be written; another time it may be different."""
        self.old: list[int] = []
        """Descriptors left behind while another thread may still be using them."""

    def identify(self) -> None:
        """Look which file it is that is open."""
        self.identity = identity(self._disk.fstat(self.fd))

    def read(self, length: int, offset: int) -> bytes:
        """Some of the file, fewer bytes only at its end."""
        return self._disk.pread(self.fd, length, offset)

    def size(self) -> int:
        """The length of the file."""
        return self._disk.fstat(self.fd).st_size

    def open(self) -> bool:
        """Have a descriptor: for writing where that may be. True if the name leads to another file than before."""
        if self.fd >= 0:
            return False
        try:
            return self._open(os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND)
        except OSError as error:
            if self._read_only or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            return self._open(os.O_RDONLY)

    def open_for_writing(self) -> bool:
        """The same, or fail. What could not be written before may be writable now."""
        if self.fd >= 0 and self.is_writable:
            return False
        if self._read_only:
            raise OSError(errno.EACCES, "it was opened for reading only", self.path)
        self.leave()
        return self._open(os.O_RDWR | os.O_APPEND)

    def _open(self, flags: int) -> bool:
        fd = self._disk.open(self.path, flags)
        try:
            file = identity(self._disk.fstat(fd))
        except BaseException:
            self._disk.close(fd)
            raise
        before, self.identity = self.identity, file
        self.fd, self.is_writable = fd, flags != os.O_RDONLY
        return before not in ((0, 0), file)

    def copy(self) -> ReadingHandle:
        """A descriptor that reads what is open now, whatever becomes of this one."""
        return ReadingHandle(self._disk, self.fd)

    def leave(self) -> None:
        """Do not use this descriptor again, and let go of its lock."""
        if self.fd >= 0:
            self._disk.unlock(self.fd)
            self.old.append(self.fd)
            self.fd = -1

    def close_old(self) -> None:
        """Close what was left behind. Nobody uses any of it."""
        while self.old:
            self._disk.close(self.old.pop())

    def close(self) -> None:
        """Let go of every descriptor. Each is forgotten before it is closed: its number may soon be another file's."""
        fd, self.fd = self.fd, -1
        if fd >= 0 and fd not in self.old:
            self.old.append(fd)
        self.close_old()


def identity(status: os.stat_result) -> tuple[int, int]:
    """Which file this is."""
    return status.st_dev, status.st_ino
