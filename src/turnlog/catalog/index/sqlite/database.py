"""The file of the catalog. Whatever is wrong with it, it is deleted and rebuilt: nothing in it is original.

Any number of processes may read it. A writer holds a lock besides SQLite's own: see `lock.py`.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from turnlog.catalog.index.notes import DIRTY, UNSCRUBBED, drop_note
from turnlog.catalog.index.sqlite.damage import Damaged, reporting_damage, reporting_disk_errors
from turnlog.catalog.index.sqlite.engine import SqliteEngine, regexp
from turnlog.catalog.index.sqlite.lock import locked
from turnlog.catalog.index.sqlite.schema import APPLICATION, TABLES, VERSION
from turnlog.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

IN_MEMORY = ":memory:"
_CACHE_KB = 2_000
"""A query reads each page once: a larger cache would only cost memory."""
_HEEDED = 2_000
"""The number of virtual machine steps after which SQLite asks whether to continue: a fraction of a millisecond."""
_CONSISTENCY = f"""
SELECT (SELECT 1 FROM meta WHERE key IN ('{DIRTY}', '{UNSCRUBBED}')),
(SELECT 1 FROM docs WHERE id = (SELECT max(id) FROM docs) AND bundle NOT IN (SELECT id FROM texts))
"""
_TABLES = frozenset(
    line.split()[2] if not line.startswith("CREATE VIRTUAL") else line.split()[3]
    for line in TABLES.splitlines()
    if line.startswith(("CREATE TABLE", "CREATE VIRTUAL"))
)


class Database:
    """The open file. `connection` is opened when first needed; after `close`, it is opened again."""

    def __init__(self, path: str, *, statements: int = 128) -> None:
        self.path = path
        self._statements = statements
        """How many prepared statements SQLite keeps for reuse; each keeps its last values in memory."""
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._closings = 0
        self.terms: dict[object, list[tuple[str, int]]] = {}
        """A cache of words: see `SqliteEngine`."""
        self.is_new = False
        """Whether the file was created, and has no content yet."""

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, opened and checked. Raises `Damaged` if there is no file."""
        if self._connection is None:
            self._open()
            assert self._connection is not None
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        self.terms.clear()
        self._closings += 1
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def set_cancel_check(self, has_left: Callable[[], bool] | None) -> None:
        """Interrupt queries as soon as `has_left` returns true; None ends that. Nothing may be written meanwhile."""
        if self._connection is not None:
            self._connection.set_progress_handler(has_left, _HEEDED)

    def _open(self) -> None:
        for _ in range(10):
            identity = self._file_identity()
            if identity is None:
                raise Damaged(f"{self.path} is not there")
            try:
                connection = self._connect()
            except sqlite3.Error as error:
                raise Damaged(str(error)) from None
            if self._file_identity() == identity:  # else the file was replaced while it was opened
                self._connection, self._identity = connection, identity
                return
            connection.close()
        raise Unavailable(f"{self.path} is replaced again and again", hint="is another program at work there?")

    def _file_identity(self) -> tuple[int, int] | None:
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
    def version(self) -> tuple[int, int]:
        """A value that changes whenever another connection has written, or the file was opened again.

        SQLite counts the writes for each connection, so the number of one says nothing about another.
        """
        with reporting_damage():
            written: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return self._closings, written

    @property
    def is_unfinished(self) -> bool:
        """Whether an indexing process was stopped. Raises `Damaged` if the newest entry has no text."""
        with reporting_damage():
            dirty, is_lost = self.connection.execute(_CONSISTENCY).fetchone()
        if is_lost:
            raise Damaged("the newest entry has no text")
        return dirty is not None

    @property
    def is_current(self) -> bool:
        """Whether the open file is still the one at `path`."""
        return self._connection is not None and self._file_identity() == self._identity

    def make(self) -> None:
        """Replace whatever is at `path` with an empty catalog. Only under the lock."""
        self.close()
        with reporting_disk_errors(self.path):
            for suffix in ("", "-wal", "-shm", "-journal"):
                if os.path.isdir(self.path + suffix):
                    raise IsADirectoryError(errno.EISDIR, "it is a folder")
                if os.path.lexists(self.path + suffix):
                    os.unlink(self.path + suffix)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        connection = self._connect(is_new=True)
        with reporting_disk_errors(self.path):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                signed = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}"
                connection.executescript(f"BEGIN IMMEDIATE; {TABLES} {signed}; COMMIT")
            except BaseException:
                connection.close()
                raise
        self._connection, self._identity, self.is_new = connection, self._file_identity(), True

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[object]:
        """Acquire the write lock. `waiting` is called repeatedly while another process holds it.

        A connection to a file that was replaced meanwhile is closed: what was read from it before is not valid.
        """
        path = self.path.removesuffix(".sqlite") + ".lock"
        with reporting_disk_errors(path):
            held = locked(path, waiting)
        if not self.is_current:
            self.close()
        return held

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A transaction: committed whole, or rolled back. Only under the lock."""
        connection = self.connection
        with reporting_disk_errors(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file, so that readers need not search it. Only under the lock."""
        with reporting_disk_errors(self.path):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def scrub(self) -> None:
        """Remove what was deleted from the tables from the files as well. Only under the lock."""
        with self.writing() as db:
            db.execute("DELETE FROM paths WHERE id NOT IN (SELECT path FROM touched)")
            # FTS5 keeps deleted words, and marks them as deleted, until segments are merged.
            db.execute("INSERT INTO words (words) VALUES ('optimize')")
        with reporting_disk_errors(self.path):
            self.connection.execute("PRAGMA temp_store = DEFAULT")  # a copy of the file has no room in memory
            self.connection.execute("VACUUM")
            self.connection.execute("PRAGMA temp_store = MEMORY")
            is_busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise Unavailable(
                f"{self.path} is being read: what was removed for good is still in its log", hint="ask again"
            )
        with self.writing() as db:
            drop_note(SqliteEngine(db), UNSCRUBBED)


class MemoryDatabase(Database):
    """A catalog in memory, for when no disk has room for the file: lost when it is closed."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)

    def _file_identity(self) -> tuple[int, int] | None:
        return None if self._connection is None else (0, 0)

    def make(self) -> None:
        """Create an empty catalog."""
        self.close()
        self._connection = self._connect(is_new=True)
        self._connection.executescript(TABLES)
        self._identity, self.is_new = (0, 0), True

    def lock(self, waiting: Callable[[], None] | None = None) -> AbstractContextManager[object]:
        """A no-op: no other process has this catalog."""
        return nullcontext()
