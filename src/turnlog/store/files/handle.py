"""The descriptor of one file: opened on demand, abandoned when it cannot be trusted any more."""

from __future__ import annotations

import errno
import os

from turnlog.errors import Unavailable
from turnlog.store.files.disk import Disk, Held
from turnlog.store.forked import renew_after_fork


class ReadingHandle(Held):
    """A second descriptor for independent reading. It shares the lock of the first one while that has it."""

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
    """The descriptor for reads and writes: `fd`, -1 if the file is not open."""

    def __init__(self, disk: Disk, path: str, *, read_only: bool, fd: int) -> None:
        self.path = path
        self.fd = fd
        self.identity = (0, 0)
        """Device and inode of the file, remembered while it is not open."""
        self._before = (0, 0)
        """The identity before the last opening."""
        self._disk = disk
        self._read_only = read_only
        self.is_writable = fd >= 0
        """Whether the current descriptor is writable; the next one may differ."""
        self.abandoned: list[int] = []
        """Abandoned descriptors that another thread may still be using."""

    def identify(self) -> None:
        """Update `identity` from the open descriptor."""
        self.identity = identity(self._disk.fstat(self.fd))

    def read(self, length: int, offset: int) -> bytes:
        """Read bytes of the file; fewer than `length` only at its end."""
        return self._disk.pread(self.fd, length, offset)

    def size(self) -> int:
        """Return the length of the file."""
        return self._disk.fstat(self.fd).st_size

    def open(self) -> bool:
        """Open the file, writable if allowed. Returns True if the name belongs to a different file than before."""
        if self.fd >= 0:
            return False
        try:
            return self._open(os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND)
        except OSError as error:
            if self._read_only or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            return self._open(os.O_RDONLY)

    def open_for_writing(self) -> bool:
        """Open the file for writing, or raise. A file that was read-only before may be writable now."""
        if self.fd >= 0 and self.is_writable:
            return False
        if self._read_only:
            raise OSError(errno.EACCES, "it was opened for reading only", self.path)
        self.abandon()
        return self._open(os.O_RDWR | os.O_APPEND)

    def _open(self, flags: int) -> bool:
        fd = self._disk.open(self.path, flags)
        try:
            file = identity(self._disk.fstat(fd))
        except BaseException:
            self._disk.close(fd)
            raise
        self._before, self.identity = self.identity, file
        self.fd, self.is_writable = fd, flags != os.O_RDONLY
        return self._before not in ((0, 0), file)

    def reject(self) -> None:
        """Abandon the file that was just opened, because it is not ours: the one before remains the expected one."""
        self.abandon()
        self.identity = self._before

    def copy(self) -> ReadingHandle:
        """Return a second descriptor of the open file, independent of this one."""
        return ReadingHandle(self._disk, self.fd)

    def abandon(self) -> None:
        """Abandon this descriptor, and release its lock."""
        if self.fd >= 0:
            self._disk.unlock(self.fd)
            self.abandoned.append(self.fd)
            self.fd = -1

    def close_abandoned(self) -> None:
        """Close the abandoned descriptors. The caller makes sure that none is in use."""
        while self.abandoned:
            self._disk.close(self.abandoned.pop())

    def close(self) -> None:
        """Close every descriptor. Each is forgotten before it is closed, because its number may soon be reused."""
        fd, self.fd = self.fd, -1
        if fd >= 0 and fd not in self.abandoned:
            self.abandoned.append(fd)
        self.close_abandoned()


def identity(status: os.stat_result) -> tuple[int, int]:
    """Return device and inode of a file."""
    return status.st_dev, status.st_ino
