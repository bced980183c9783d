"""Reading files through handles of their folders: small files as a whole, others in pieces."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager

from turnlog.log.startup import NamedTuple
from turnlog.workspace.metadata import Attributes, attributes_of
from turnlog.workspace.sink import Sink, hash_open
from turnlog.workspace.systemerror import raise_if_system_error

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
YOUNG_NS = 2_000_000_000
"""A file that changed this recently may change again without a visible change of its times."""
_ATTEMPTS = 3
_WHOLE = 1 << 20
"""The size up to which a file is read at once."""

Signature = tuple[int, int, int, int, int]
"""Size, mtime, ctime, inode and mode: every change of a file changes one of them."""


def signature(status: os.stat_result) -> Signature:
    """The numbers that show whether a file changed."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode


class ReadFile(NamedTuple):
    """A file that was read into a sink."""

    digest: str
    size: int
    signature: Signature
    """After it was read."""
    attributes: Attributes

    @property
    def mode(self) -> int:
        """The permission bits."""
        return stat.S_IMODE(self.signature[4])


def read_file(sink: Sink, folder: int, name: str, data: bytes | None = None) -> ReadFile:
    """Read a file into a sink.

    `data` is the content, if it was read already. If another process writes to the file, it is read again, up to a
    limit.
    """
    fd = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        for _ in range(_ATTEMPTS):
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(errno.EINVAL, "not a file any more")
            if data is None and before.st_size <= _WHOLE:
                data = _read(fd, before.st_size)
            if data is not None:
                digest, size = sink.add(data), len(data)
            else:
                digest = sink.add_file(fd, before.st_size)
                size = os.lseek(fd, 0, os.SEEK_CUR)
            after = signature(os.fstat(fd))
            if after == signature(before) and size == before.st_size:
                return ReadFile(digest, size, after, attributes_of(fd))
            data = None
            os.lseek(fd, 0, os.SEEK_SET)
        raise OSError(errno.EBUSY, "it changed each time it was read")
    finally:
        os.close(fd)


def read_small(folder: int, name: str | bytes) -> bytes:
    """The whole content of a file."""
    fd = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        return _read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def read_rules(folder: int, prefix: bytes, name: str) -> bytes:
    """The content of a rule file; empty if it is missing or unreadable. `prefix` is the path of the folder."""
    try:
        return read_small(folder, name)
    except OSError as error:
        raise_if_system_error(error, prefix + os.fsencode(name))
        return b""


def read_below(root: str, path: bytes) -> bytes | None:
    """The content of a file below a root, without following links; None if there is no such file."""
    try:
        with _folder_of(root, path) as (fd, name):
            return read_small(fd, name)
    except OSError:
        return None


def exists_below(root: str, path: bytes) -> bool:
    """Whether a path below a root exists, without following links."""
    try:
        with _folder_of(root, path) as (fd, name):
            os.lstat(name, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # or it is unknown
    return True


@contextmanager
def _folder_of(root: str, path: bytes) -> Generator[tuple[int, bytes]]:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        *folders, name = path.split(b"/")
        for folder in folders:
            above, fd = fd, os.open(folder, FOLDER_FLAGS, dir_fd=fd)
            os.close(above)
        yield fd, name
    finally:
        os.close(fd)


def _read(fd: int, size: int) -> bytes:
    """The content of an open file that had this size."""
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data  # one more byte was requested, and there is none
    while len(data) <= size and (piece := os.read(fd, size + 1 - len(data))):
        data += piece
    return data  # a concurrent writer may append faster than we read: at most one extra byte


def hash_file(folder: int, name: bytes, size: int) -> str:
    """The digest of a file's current content, up to one byte beyond `size`."""
    fd = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        return hash_open(fd, size + 1)
    finally:
        os.close(fd)
