"""Portions into the tables of a file, in the order that FTS5 likes."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.batch import columns_of
from turnlog.catalog.index.sqlite.database import IN_MEMORY, Database
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.rowid import Rowids
from turnlog.catalog.index.totals import spend

if TYPE_CHECKING:
    import sqlite3
    from concurrent.futures import Future, ThreadPoolExecutor

    from turnlog.catalog.index.batch import Portion

    _Places = list[tuple[int, int]]

_OBJECTS = 50_000
"""The threshold of Python's cyclic garbage collector while much is read: most new objects are waiting texts."""
_VALUES = 32_000
"""The maximum number of values in one SQLite statement."""
_ROWS = 400
_PATHS = 50_000
_CACHE_KB = 4_000
_LOG_PAGES = 16_000
"""The size of the write-ahead log in pages (64 MB) at which it is copied into the file: few pages are copied twice."""
_SEGMENTS = 200
"""How many FTS5 segments of one size may exist before they are merged; searching them takes milliseconds."""
_MERGED, _USUAL = 8, 4
"""How many segments of one size are merged at a time: while much is written, and otherwise."""


class SqliteWriter:
    """See `PortionWriter`.

    Where there is much, one portion is written while the next is read: SQLite and zstd let Python go on meanwhile. The
    thread has a connection of its own.
    """

    most = 4 << 20  # rows in the order of their ids, or FTS5 writes a segment for each session

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool: ThreadPoolExecutor | None = None
        self._own: Database | None = None
        self._written: Future[None] | None = None
        self._collecting: tuple[int, int, int] | None = None
        """How often Python looked for garbage before."""
        self.has_failed = False
        """Whether something could not be written."""
        self._paths: dict[str, int] = {}

    def begin_many(self) -> None:
        """There is much to come."""
        import gc
        from concurrent.futures import ThreadPoolExecutor

        with self._database.writing() as db:
            db.execute("INSERT INTO words (words, rank) VALUES ('crisismerge', ?)", (_SEGMENTS,))
            db.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (16 << 20,))
            db.execute("INSERT INTO words (words, rank) VALUES ('automerge', ?)", (_MERGED,))
        self._collecting = gc.get_threshold()
        gc.set_threshold(max(self._collecting[0], _OBJECTS), *self._collecting[1:])
        if self._database.path != IN_MEMORY:
            self._own = Database(self._database.path, statements=0)
            self._own.connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            self._own.connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            self._pool = ThreadPoolExecutor(1)

    def wait(self) -> None:
        """Until everything is there."""
        if self._written is not None:
            self._written.result()

    def close(self) -> None:
        """Let go of thread and connection, whatever happened."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._own is not None:
            self._own.close()
        if self._collecting is not None:
            import gc

            gc.set_threshold(*self._collecting)

    def tidy(self) -> None:
        """After many, also if that was interrupted."""
        many = "SELECT v FROM words_config WHERE k = 'automerge' AND v = ?"
        if self._database.connection.execute(many, (_MERGED,)).fetchall():
            with self._database.writing() as db:
                db.execute("INSERT INTO words (words, rank) VALUES ('automerge', ?)", (_USUAL,))

    def write(self, portion: Portion) -> None:
        """See `PortionWriter.write`."""
        # Here, and not where it is written: that takes longer, so this side has the time.
        texts = portion.bundles()
        self.has_failed = True
        self.wait()
        with ExitStack() as stack:
            db = stack.enter_context((self._own or self._database).writing())
            # What takes many small statements; a thread would wait for Python before each.
            for statement, values in portion.steps:
                db.execute(statement, values)
            _forget(db, portion.gone)
            db.executemany(spend(SqliteEngine(db)), portion.spent)
            db.executemany("INSERT OR REPLACE INTO used VALUES (?, ?, ?, ?, ?, ?)", portion.used)
            rest = stack.pop_all()
        if self._pool is None:
            self._finish(rest, db, portion, *texts)
        else:
            self._written = self._pool.submit(self._finish, rest, db, portion, *texts)
        self.has_failed = False

    def _finish(
        self, writing: ExitStack, db: sqlite3.Connection, portion: Portion, packed: list[bytes], places: _Places
    ) -> None:
        with writing:
            if portion.docs:
                self._add(db, portion, packed, places)

    def _add(self, db: sqlite3.Connection, portion: Portion, packed: list[bytes], places: _Places) -> None:
        self._learn(db, {path for doc in portion.docs for path in doc.said.files})
        last = max((row[0] for row in db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'texts'")), default=0)
        rowids = Rowids(db, (doc.at for doc in portion.docs))
        docs: list[tuple[Any, ...]] = []
        words: list[tuple[int, str]] = []
        touched: list[tuple[int, int]] = []
        for (at, session, step, entry, said, hash), (bundle, number) in zip(portion.docs, places, strict=True):
            id, at = rowids.take(at)
            docs.append((id, at, *columns_of(session, step, entry, said, hash), last + 1 + bundle, number))
            words.append((id, said.text))
            if said.files:
                touched += [(self._paths[path], id) for path in set(said.files)]
        rowids.remember()
        _insert(db, "INSERT INTO docs", sorted(docs))
        _insert(db, "INSERT INTO texts", list(enumerate(packed, last + 1)))
        _insert(db, "INSERT INTO words (rowid, text)", sorted(words))
        _insert(db, "INSERT OR IGNORE INTO touched", touched)

    def _learn(self, db: sqlite3.Connection, paths: set[str]) -> None:
        """The numbers of these paths; new ones get one."""
        if len(self._paths) > _PATHS:
            self._paths.clear()
        new = [(path,) for path in sorted(paths - self._paths.keys())]
        _insert(db, "INSERT OR IGNORE INTO paths (path)", new)
        for begin in range(0, len(new), _ROWS):
            some = [path for (path,) in new[begin : begin + _ROWS]]
            rows = db.execute(f"SELECT path, id FROM paths WHERE path IN ({','.join('?' * len(some))})", some)
            self._paths.update(rows.fetchall())


def _forget(db: sqlite3.Connection, gone: list[int]) -> None:
    engine, emptied = SqliteEngine(db), dict[int, set[int]]()
    for doc in sorted(gone):
        row = db.execute("SELECT bundle, number FROM docs WHERE id = ?", (doc,)).fetchone()
        if row is not None:
            db.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (doc, engine.text_in(*row)))
            emptied.setdefault(row[0], set()).add(row[1])
    for bundle, numbers in emptied.items():
        texts = engine.bundle(bundle)
        left = None if texts is None else texts.without(numbers)
        if left is None:
            db.execute("DELETE FROM texts WHERE id = ?", (bundle,))
        else:
            db.execute("UPDATE texts SET data = ? WHERE id = ?", (left, bundle))
    ids = [(doc,) for doc in gone]
    for table, column in (("docs", "id"), ("touched", "doc")):
        db.executemany(f"DELETE FROM {table} WHERE {column} = ?", ids)


def _insert(db: sqlite3.Connection, what: str, rows: list[tuple[Any, ...]]) -> None:
    """As many rows as can be with each statement.

    Who writes in a thread waits for Python before each of them, and FTS5 writes a segment for each that has several.
    """
    at_once = _VALUES // len(rows[0]) if rows else 1
    for begin in range(0, len(rows), at_once):
        some = rows[begin : begin + at_once]
        row = f"({','.join('?' * len(some[0]))})"
        db.execute(f"{what} VALUES {','.join([row] * len(some))}", list(chain.from_iterable(some)))
