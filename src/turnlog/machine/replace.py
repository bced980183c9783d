"""Somebody else's file, replaced whole or not at all: its mode, its owner and links to it stay."""

from __future__ import annotations

import os

from turnlog.errors import Conflict, Corrupt, Unavailable
from turnlog.log.ids import word


def read_bytes(path: str) -> bytes | None:
    """What is in a file; None where there is no such."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} could not be read: {error.strerror}") from None


def text_of(path: str, data: bytes | None) -> str:
    """The same as text."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise Corrupt(f"{path} is not UTF-8 at byte {error.start}") from None


def replace_file(path: str, before: bytes | None, after: bytes) -> None:
    """Put it in the place of what was read `before`. Raises `Conflict` where that is something else by now."""
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
        raise Unavailable(f"{path} could not be written: {error.strerror}", hint="change it by hand") from None


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
