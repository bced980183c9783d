"""The file of the catalog. Whatever is wrong with it, it is thrown away and made again: it never holds the truth.

Any number of processes read it at once. Who writes holds a lock of ours besides SQLite's own: versions of SQLite that
come with Python can lose pages where two connections begin a new write-ahead log at the same moment.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import stat
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.sqlite.engine import regexp
from turnlog.catalog.index.sqlite.schema import APPLICATION, TABLES, VERSION
from turnlog.errors import OutOfSpace, Unavailable
from turnlog.machine.environment import cache_folders
from turnlog.machine.location import key_of
from turnlog.machine.modules import without_old

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    from turnlog.store.files.disk import Held

IN_MEMORY = ":memory:"
OLD = "catalog.sqlite"
"""What it was called when it lay in the home."""
UNSCRUBBED = "unscrubbed"
"""Set in the transaction that deletes text, cleared after `scrub`: after a crash, the next process scrubs."""
_PAUSE_S = 0.05
_CACHE_KB = 2_000
"""A query reads each page once: a larger cache would only cost memory."""
_HEEDED = 2_000
"""The number of virtual machine steps after which SQLite asks whether to continue: a fraction of a millisecond."""
_AGREE = """
SELECT (SELECT 1 FROM meta WHERE key IN ('unsettled', 'unscrubbed')),
(SELECT 1 FROM docs WHERE id = (SELECT max(id) FROM docs) AND bundle NOT IN (SELECT id FROM texts))
"""
_TABLES = frozenset(
    line.split()[2] if not line.startswith("CREATE VIRTUAL") else line.split()[3]
    for line in TABLES.splitlines()
    if line.startswith(("CREATE TABLE", "CREATE VIRTUAL"))
)


class Damaged(Exception):
    """The file is not a catalog of this version, or no longer a whole one."""


class Database:
    """The file, open. `connection` is made when it is first needed, and made anew when the file was replaced."""

    def __init__(self, path: str, *, statements: int = 128) -> None:
        self.path = path
        self._statements = statements
        """How many of them are kept for the next time, each with the values that it had the last time."""
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self.terms: dict[object, list[tuple[str, int]]] = {}
        """Words that were asked for last: see `SqliteEngine`."""
        self.is_new = False
        """Whether it had to be made, and nothing is in it yet."""

    @property
    def connection(self) -> sqlite3.Connection:
        """Opened and checked. Raises `Damaged` where there is nothing to open."""
        if self._connection is None:
            self._open()
            assert self._connection is not None
        return self._connection

    def close(self) -> None:
        """Let go of it."""
        self.terms.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def heed(self, has_left: Callable[[], bool] | None) -> None:
        """Stop what is being asked as soon as this says so; nothing that is written may be asked meanwhile."""
        if self._connection is not None:
            self._connection.set_progress_handler(has_left, _HEEDED)

    def _open(self) -> None:
        for _ in range(10):
            identity = self._look()
            if identity is None:
                raise Damaged(f"{self.path} is not there")
            try:
                connection = self._connect()
            except sqlite3.Error as error:
                raise Damaged(str(error)) from None
            if self._look() == identity:  # else it was replaced while it was opened
                self._connection, self._identity = connection, identity
                return
            connection.close()
        raise Unavailable(f"{self.path} is replaced again and again", hint="is another program at work there?")

    def _look(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _connect(self, *, is_new: bool = False) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=60, cached_statements=self._statements
        )
        try:
            if not is_new:
                self._check(connection)
            connection.create_function("regexp", 2, regexp, deterministic=True)
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) != (APPLICATION, VERSION):
            raise Damaged(f"version {version} of {application:#x}")
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not names >= _TABLES:
            raise Damaged(f"without {', '.join(sorted(_TABLES - names))}")

    @property
    def version(self) -> int:
        """Another number whenever somebody else has written."""
        with whole():
            return self.connection.execute("PRAGMA data_version").fetchone()[0]

    def noted(self, key: str) -> Any:
        """What is noted under a name; None if nothing is."""
        row = self.connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    @property
    def is_unfinished(self) -> bool:
        """Whether somebody was stopped while reading. Raises `Damaged` where the newest entry has no text."""
        with whole():
            dirty, is_lost = self.connection.execute(_AGREE).fetchone()
        if is_lost:
            raise Damaged("the newest entry has no text")
        return dirty is not None

    @property
    def is_current(self) -> bool:
        """Whether the file that is open is still the one with that name."""
        return self._connection is not None and self._look() == self._identity

    def make(self) -> None:
        """An empty one in the place of whatever is there. Only under the lock."""
        self.close()
        with _disk(self.path):
            for suffix in ("", "-wal", "-shm", "-journal"):
                if os.path.isdir(self.path + suffix):
                    raise IsADirectoryError(errno.EISDIR, "it is a folder")
                if os.path.lexists(self.path + suffix):
                    os.unlink(self.path + suffix)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = self._connect(is_new=True)
        with _disk(self.path):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                signed = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}"
                connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {signed}; COMMIT")
            except BaseException:
                connection.close()
                raise
        self._connection, self._identity, self.is_new = connection, self._look(), True

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[object]:
        """Holds the write lock. `waiting` is called from time to time while somebody else holds it."""
        path = self.path.removesuffix(".sqlite") + ".lock"
        with _disk(path):
            return _locked(path, waiting)

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """One transaction: all of it or nothing. Only under the lock."""
        connection = self.connection
        with _disk(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Everything into the file itself, so that readers have no log to look through. Only under the lock."""
        with _disk(self.path):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def scrub(self) -> None:
        """Nothing is left in the files of what was deleted from the tables. Only under the lock."""
        with self.writing() as db:
            db.execute("DELETE FROM paths WHERE id NOT IN (SELECT path FROM touched)")
            # FTS5 notes what was deleted beside what was said, until both are put together.
            db.execute("INSERT INTO words (words) VALUES ('optimize')")
        with _disk(self.path):
            self.connection.execute("PRAGMA temp_store = DEFAULT")  # a second copy of it has no room in memory
            self.connection.execute("VACUUM")
            self.connection.execute("PRAGMA temp_store = MEMORY")
            is_busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise Unavailable(
                f"{self.path} is being read: what was removed for good is still in its log", hint="ask again"
            )
        with self.writing() as db:
            db.execute("DELETE FROM meta WHERE key = ?", (UNSCRUBBED,))


class MemoryDatabase(Database):
    """The same where no disk has room for the file: gone when it is closed."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)

    def _look(self) -> tuple[int, int] | None:
        return None if self._connection is None else (0, 0)

    def make(self) -> None:
        """An empty one."""
        self.close()
        self._connection = self._connect(is_new=True)
        self._connection.executescript(TABLES)
        self._identity, self.is_new = (0, 0), True

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[object]:
        """Nobody else has it."""
        return nullcontext()


def _locked(path: str, waiting: Callable[[], None] | None) -> Held:
    with without_old():
        from turnlog.store.files import disk  # only who writes pays for loading it
        from turnlog.store.forked import renew_after_fork

    deadline = time.monotonic() + disk.LOCK_WAIT_S
    while True:
        held = disk.Held(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        try:
            renew_after_fork(held)
            while not _try_to_lock(held.fileno()):
                if time.monotonic() > deadline:
                    raise disk.waited_too_long(held.fileno())
                if waiting is not None:
                    waiting()
                time.sleep(_PAUSE_S)
            if os.path.lexists(path) and os.path.samestat(os.fstat(held.fileno()), os.stat(path)):
                return held
        except BaseException:
            held.close()
            raise
        held.close()  # somebody deleted it meanwhile, and others may hold another one


def _try_to_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_damage(error: sqlite3.Error) -> bool:
    """Whether a file is damaged, or none of SQLite's."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def whole() -> Generator[None]:
    """For those who only read: whatever is wrong inside, the catalog is damaged."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:
        raise Damaged(str(error)) from None


@contextmanager
def _disk(path: str) -> Generator[None]:
    """What the disk and SQLite say, in our words."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error):
            raise OutOfSpace(f"{path} could not be written: {error}", hint="free some space and ask again") from None
        if "locked" in str(error) or "busy" in str(error):
            raise Unavailable(f"{path}: {error}", hint="another program has it open; ask again") from None
        raise Damaged(str(error)) from None
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.DatabaseError as error:
        raise Damaged(str(error)) from None
    except OSError as error:
        kind = OutOfSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else Unavailable
        raise kind(f"{path} could not be written: {error.strerror or error}") from None


def database_of(location: str, *, agents: bool) -> Database:
    """The catalog of a home: in a file, or in memory where there can be none."""
    path = place_of(location, agents=agents)
    return MemoryDatabase() if path is None else Database(path)


def place_of(location: str, *, agents: bool) -> str | None:
    """Where the catalog of a home lies: with what this machine can make again, and this person alone can read.

    One with other agents' sessions and one without are two: each knows only what it is asked for.
    """
    base = next(filter(_is_ours, cache_folders()), None)
    if base is None:
        return None
    return os.path.join(base, f"{key_of(location)}{'' if agents else '-own'}.sqlite")


def _is_ours(folder: str) -> bool:
    """Whether a folder is there, or can be made, where nobody else can put anything and we can."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.lstat(folder)
        is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if is_private and stat.S_IMODE(status.st_mode) != 0o700:
            os.chmod(folder, 0o700)
    except OSError:
        return False
    return is_private and os.access(folder, os.W_OK | os.X_OK)


def has_room(path: str, size_bytes: int) -> bool:
    """Whether its disk may have room for the index of so much: it takes about half of that."""
    try:
        volume = os.statvfs(os.path.dirname(path))
    except OSError:
        return False
    return volume.f_bavail * volume.f_frsize > size_bytes


def remove_old(folder: str) -> None:
    """Take away the catalog that earlier versions kept in the home itself, where we may."""
    path = os.path.join(folder, OLD)
    if not os.path.lexists(path):
        return
    for name in (f"{OLD}-wal", f"{OLD}-shm", f"{OLD}-journal", "catalog.lock", OLD):
        with suppress(OSError):  # `doctor` names what is left
            os.unlink(os.path.join(folder, name))
