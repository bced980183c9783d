"""Reading files through handles of their folders: whole into memory if they are small, piece by piece if not."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from turnlog.log.digest import sha256
from turnlog.workspace.tree import MAGIC

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_ATTEMPTS = 3
_SYSTEMS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO))
_WHOLE = 1 << 20
"""Files up to this size are read at once."""

Signature = tuple[int, int, int, int, int]
"""Size, mtime, ctime, inode and mode: whatever changes a file changes one of them."""


class Sink(Protocol):
    """Where contents go."""

    def add(self, data: bytes, /) -> str:
        """Keep these bytes; returns their digest."""
        ...

    def add_file(self, fd: int, size: int) -> str:
        """Keep the next `size` bytes of an open file, or as many as there are; returns their digest."""
        ...


def raise_if_system_error(error: OSError, path: bytes) -> None:
    """Raise what is the system's fault and not the file's: a checkpoint without the file would only look like one."""
    if error.errno in _SYSTEMS:
        raise error if error.filename == path else OSError(error.errno, error.strerror, path) from error


def signature(status: os.stat_result) -> Signature:
    """What tells a file from what it was."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode


Attributes = tuple[tuple[bytes, bytes], ...]
"""Extended attributes with their values, in order."""


def is_kept(name: bytes) -> bool:
    """Whether an extended attribute belongs to a file; what the system puts there for itself is the system's."""
    return name.startswith((b"user.", b"system.posix_acl_"))


def attributes_of(fd: int) -> Attributes:
    """The extended attributes of an open file or folder, ACLs among them; none where the system has no such thing."""
    if sys.platform != "linux":
        return ()
    try:
        names = os.listxattr(fd)
        return tuple((name, os.getxattr(fd, name)) for name in sorted(map(os.fsencode, names)) if is_kept(name))
    except OSError as error:
        raise_if_system_error(error, b"")
        return ()  # a file system without them, or they changed while we looked


def read_file(sink: Sink, folder: int, name: str, data: bytes | None = None) -> tuple[str, int, Signature, Attributes]:
    """The digest and size of what is in a file, its signature after it was read, and its extended attributes.

    `data`: it was read already. Somebody may write to it meanwhile: then it is read again, and given up after a few
    times.
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
                return digest, size, after, attributes_of(fd)
            data = None
            os.lseek(fd, 0, os.SEEK_SET)
        raise OSError(errno.EBUSY, "it changed each time it was read")
    finally:
        os.close(fd)


def read_small(folder: int, name: str | bytes) -> bytes:
    """All that is in a file."""
    fd = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        return _read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def read_rules(folder: int, prefix: bytes, name: str) -> bytes:
    """What is in a rule file; nothing if there is none, or none that can be read. `prefix` is where the folder is."""
    try:
        return read_small(folder, name)
    except OSError as error:
        raise_if_system_error(error, prefix + os.fsencode(name))
        return b""


def read_below(root: str, path: bytes) -> bytes | None:
    """What is in a file somewhere below a root, never through a link; None if there is no such file."""
    try:
        with _folder_of(root, path) as (fd, name):
            return read_small(fd, name)
    except OSError:
        return None


def is_below(root: str, path: bytes) -> bool:
    """Whether there is anything at a path below a root, never through a link."""
    try:
        with _folder_of(root, path) as (fd, name):
            os.lstat(name, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # or nobody can tell
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
    """All that is in an open file which had that size."""
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data  # one more was asked for and not there
    while len(data) <= size and (piece := os.read(fd, size + 1 - len(data))):
        data += piece
    return data  # somebody may append faster than we read: never more than one too many


def hash_file(folder: int, name: bytes, size: int) -> str:
    """The digest of what is in a file now, if it has that size."""
    fd = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        return _hash(fd, size + 1)
    finally:
        os.close(fd)


def _hash(fd: int, size: int) -> str:
    piece = os.read(fd, min(_WHOLE, size))
    hashed = sha256(piece)
    while piece and (size := size - len(piece)) > 0:
        piece = os.read(fd, min(_WHOLE, size))
        hashed.update(piece)
    return "sha256:" + hashed.hexdigest()


class Glance:
    """A sink that keeps only trees: files are known by their digests."""

    def __init__(self) -> None:
        self.trees: dict[str, bytes] = {}
        self.contents: set[str] = set()
        """The digests of files; what is in them is in the files."""

    def has(self, digest: str) -> bool:
        """Whether a digest may be relied on: nothing is kept, so any may."""
        return True

    def add(self, data: bytes) -> str:
        """Keep these bytes if they may be a tree; returns their digest."""
        digest = "sha256:" + sha256(data).hexdigest()
        if data.startswith(MAGIC):
            self.trees[digest] = data
        self.contents.add(digest)
        return digest

    def add_file(self, fd: int, size: int) -> str:
        """The digest of what is in an open file."""
        digest = _hash(fd, size)
        self.contents.add(digest)
        return digest
