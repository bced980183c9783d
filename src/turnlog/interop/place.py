"""Writing files whole or not at all, and never over an existing one without `force`."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from msgspec import Struct

from turnlog.errors import AlreadyExists, Invalid, OutOfSpace, TurnlogError, Unavailable
from turnlog.log.ids import word

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
"""What a file system without hard links answers, such as FAT."""


class OutputFile(Struct, frozen=True):
    """One file to be written; `path` is relative, with forward slashes."""

    path: str
    data: bytes
    mode: int = 0o644


def private_folders(path: str) -> None:
    """Make a folder, and those above it that are missing: for nobody else to look into, whatever the umask.

    They are durable when this returns.
    """
    missing: list[str] = []
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
            continue  # another process was quicker
        os.chmod(folder, 0o700)
        sync_folder(os.path.dirname(folder))


def put_files(files: Iterable[OutputFile], folder: str, *, force: bool = False) -> list[str]:
    """Write every file under a folder: all are refused if one is taken, and each appears whole. Gives their paths."""
    outputs = list(files)
    targets = [_target(folder, output.path) for output in outputs]
    for target in targets if not force else ():
        if os.path.lexists(target):
            raise Taken(target)
    for output, target in zip(outputs, targets, strict=True):
        put_file(target, output.data, mode=output.mode, force=force)
    return targets


def put_file(path: str, data: bytes, *, mode: int = 0o644, force: bool = False) -> None:
    """Write one file, synced before it gets its name; without `force` never over one that is there."""
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".{os.path.basename(path)[:60]}.{word(8)}.tmp")
    with _mapped_errors(path):
        private_folders(folder)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            if force:
                os.replace(temporary, path)
            else:
                _name(temporary, path)
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
        sync_folder(folder)


@contextmanager
def appending(path: str, *, mode: int = 0o644) -> Generator[Callable[[bytes], None]]:
    """A function that appends to a file and syncs it. It is open before anything else is done, or that is refused."""
    with _mapped_errors(path):
        private_folders(os.path.dirname(path))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, mode)

    def append(data: bytes) -> None:
        with _mapped_errors(path):
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)

    try:
        yield append
    finally:
        os.close(fd)


@contextmanager
def _mapped_errors(path: str) -> Generator[None]:
    try:
        yield
    except FileExistsError:
        raise Taken(path) from None
    except OSError as error:
        kind = OutOfSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else Unavailable
        raise kind(f"{path} could not be written: {error.strerror or error}") from None


def _name(temporary: str, path: str) -> None:
    """Give a file its name if nothing has it."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC))  # takes the name
        try:
            os.replace(temporary, path)
        except BaseException:
            os.unlink(path)
            raise


@contextmanager
def locked(path: str, busy: TurnlogError, *, create: bool = True, wait_s: float = 0) -> Generator[None]:
    """Hold a lock file of another program, as it does itself; raises `busy` where that still has it after a while.

    Without `create`, one that is not there is held by nobody.
    """
    import fcntl

    try:
        if create:
            private_folders(os.path.dirname(path))
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        fd = os.open(path, flags, 0o644)
    except (OSError, ValueError) as error:
        if create or not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise Unavailable(f"{path} cannot be locked: {error}") from None
        yield
        return
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise busy from None
                time.sleep(0.01)
            except OSError as error:
                raise Unavailable(f"{path} cannot be locked: {error.strerror}") from None
        yield
    finally:
        os.close(fd)


class Taken(AlreadyExists):
    """A file of that name is already there; `path` says where."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is already there", hint="choose another place with -o, or overwrite it with --force")
        self.path = path


def safe_name(name: str, *, limit: int = 200) -> str:
    """Refuse a text that cannot be one file name: empty, with separators, `..`, NUL, too long."""
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise Invalid(f"{name!r:.80} cannot be a file name", hint="choose a file with -o")
    if len(os.fsencode(name)) > limit:
        raise Invalid(f"the file name {name!r:.60}… is longer than {limit} bytes", hint="choose a file with -o")
    return name


def _target(folder: str, path: str) -> str:
    parts = path.split("/")
    for part in parts:
        safe_name(part, limit=255)
    return os.path.join(folder, *parts)


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
