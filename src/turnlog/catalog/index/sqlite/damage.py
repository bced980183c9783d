"""Errors of the file of the catalog: it is damaged, cannot be written now, or has no room."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from turnlog.errors import OutOfSpace, Unavailable

if TYPE_CHECKING:
    from collections.abc import Generator

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_OF_THE_SYSTEM = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM)
"""Errors of the operating system: the file itself may be intact."""


class Damaged(Exception):
    """The file is no catalog of this version, or it is damaged."""


def _code(error: Exception) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether an error means that the file is damaged or no database."""
    return isinstance(error, Damaged) or _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def reporting_damage() -> Generator[None]:
    """Raise `Damaged` for every error in the content of the index. Only for blocks that just read it."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:
        if _code(error) in (*_BUSY, *_OF_THE_SYSTEM):
            raise Unavailable(f"the index could not be read: {error}", hint="ask again") from None
        raise Damaged(str(error)) from None


@contextmanager
def reporting_disk_errors(path: str) -> Generator[None]:
    """Raise `OutOfSpace`, `Unavailable` or `Damaged` for errors of the disk and of SQLite."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.OperationalError as error:
        code = _code(error)
        if code == sqlite3.SQLITE_FULL:
            raise OutOfSpace(f"{path} could not be written: {error}", hint="free some space and ask again") from None
        if code in _BUSY:
            raise Unavailable(f"{path}: {error}", hint="another program has it open; ask again") from None
        if code in _OF_THE_SYSTEM:
            raise Unavailable(f"{path} could not be written: {error}", hint="can files be written there?") from None
        raise Damaged(str(error)) from None
    except sqlite3.DatabaseError as error:
        raise Damaged(str(error)) from None
    except OSError as error:
        kind = OutOfSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else Unavailable
        raise kind(f"{path} could not be written: {error.strerror or error}") from None
