"""Reading other programs' files, and replacing them whole or not at all: mode, owner and links to them stay."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from stat import S_ISREG

from turnlog.errors import Conflict, Corrupt, Invalid, Unavailable
from turnlog.log.ids import word

BY_HAND = "change it by hand"
"""The hint for a file that its owner understands, and that cannot be changed by a program."""

_CHECK_RIGHTS = "check its owner, its mode, and the room on its disk"


def read_bytes(path: str) -> bytes | None:
    """The bytes of a file; None if there is none."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unavailable(f"{path} could not be read: it is not a regular file")
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} could not be read: {error.strerror}") from None


def _open_at_once(path: str, flags: int) -> int:
    """Open a file, also a named pipe that nobody writes to, for which `open` would wait."""
    return os.open(path, flags | os.O_NONBLOCK)


def text_of(path: str, data: bytes | None) -> str:
    """The text of these bytes of a file; empty if there is no file. Raises `Corrupt` if it is not UTF-8."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise Corrupt(f"{path} is not UTF-8 at byte {error.start}") from None


@contextmanager
def naming_file(path: str, owner: str | None = None) -> Generator[None]:
    """Add the path of the file to the messages of errors raised inside, and its owner, if given, to their hint."""
    try:
        yield
    except (Corrupt, Invalid) as error:
        is_named = error.message.startswith(path)
        if owner is not None:
            message = error.message if is_named else f"{path}, {error.message}"
            if error.hint == BY_HAND:  # its owner reads it, only we cannot change it
                raise type(error)(message, hint=f"{BY_HAND}; nothing was changed") from None
            hint = f"{owner} would not read it as it is: mend it first; nothing was changed"
            raise type(error)(message, hint=hint) from None
        if is_named:
            raise
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from None


def replace_file(path: str, before: bytes | None, after: bytes) -> None:
    """Replace the file, which held `before`, by `after`. Raises `Conflict` if it holds something else by now."""
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".{os.path.basename(target)[:60]}.{word(8)}.tmp")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as file:
                _as_it_was(fd, target)
                file.write(after)
                file.flush()
                os.fsync(fd)
            if read_bytes(path) != before:
                raise Conflict(f"{path} was changed meanwhile", hint="try again")
            os.replace(temporary, target)
        finally:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    except OSError as error:
        raise Unavailable(f"{path} could not be written: {error.strerror}", hint=_CHECK_RIGHTS) from None


def _as_it_was(fd: int, target: str) -> None:
    """The mode and the owner of the file that is replaced."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return
    mine = os.fstat(fd)
    if (status.st_uid, status.st_gid) != (mine.st_uid, mine.st_gid):
        os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, status.st_mode & 0o7777)
