"""Writes portions into the tables of a file, in the order that suits FTS5."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.batch import columns_of
from turnlog.catalog.index.sqlite.bundle import bundled
from turnlog.catalog.index.sqlite.database import IN_MEMORY, Database
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.rowid import Rowids
from turnlog.catalog.index.totals import insert_spent_sql

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

    After `begin_bulk`, one portion is written while the next is read: SQLite and zstd release the interpreter lock. The
    writing thread has its own connection.
    """

    most = 4 << 20  # large portions: rows have to be sorted by id, or FTS5 writes a segment for each session

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool: ThreadPoolExecutor | None = None
        self._thread_database: Database | None = None
        self._pending: Future[None] | None = None
        self._gc_thresholds: tuple[int, int, int] | None = None
        """The thresholds of Python's garbage collector before."""
        self.has_failed = False
        """Whether a write failed."""
        self._paths: dict[str, int] = {}

    def begin_bulk(self) -> None:
        """Prepare for much data: write in a thread."""
        import gc
        from concurrent.futures import ThreadPoolExecutor

        with self._database.writing() as db:
            db.execute("INSERT INTO words (words, rank) VALUES ('crisismerge', ?)", (_SEGMENTS,))
            db.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (16 << 20,))
            db.execute("INSERT INTO words (words, rank) VALUES ('automerge', ?)", (_MERGED,))
        self._gc_thresholds = gc.get_threshold()
        gc.set_threshold(max(self._gc_thresholds[0], _OBJECTS), *self._gc_thresholds[1:])
        if self._database.path != IN_MEMORY:
            self._thread_database = Database(self._database.path, statements=0)
            self._thread_database.connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            self._thread_database.connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            self._pool = ThreadPoolExecutor(1)

    def wait(self) -> None:
        """See `PortionWriter.wait`."""
        if self._pending is not None:
            self._pending.result()

    def close(self) -> None:
        """Close the thread and its connection, even after an error."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._thread_database is not None:
            self._thread_database.close()
        if self._gc_thresholds is not None:
            import gc

            gc.set_threshold(*self._gc_thresholds)

    def tidy(self) -> None:
        """Merge segments after much was written, even if that was interrupted."""
        many = "SELECT v FROM words_config WHERE k = 'automerge' AND v = ?"
        if self._database.connection.execute(many, (_MERGED,)).fetchall():
            with self._database.writing() as db:
                db.execute("INSERT INTO words (words, rank) VALUES ('automerge', ?)", (_USUAL,))

    def write(self, portion: Portion) -> None:
        """See `PortionWriter.write`."""
        # Here, and not in the thread: writing takes longer, so this side has the time.
        texts = bundled(portion.docs)
        self.has_failed = True
        self.wait()
        with ExitStack() as stack:
            db = stack.enter_context((self._thread_database or self._database).writing())
            # Many small statements: a thread would wait for the interpreter lock before each.
            for statement, values in portion.statements:
                db.execute(statement, values)
            _delete_texts(db, portion.deleted_docs)
            db.executemany(insert_spent_sql(SqliteEngine(db)), portion.spent)
            db.executemany("INSERT OR REPLACE INTO used VALUES (?, ?, ?, ?, ?, ?)", portion.used)
            rest = stack.pop_all()
        if self._pool is None:
            self._finish(rest, db, portion, *texts)
        else:
            self._pending = self._pool.submit(self._finish, rest, db, portion, *texts)
        self.has_failed = False

    def _finish(
        self, writing: ExitStack, db: sqlite3.Connection, portion: Portion, packed: list[bytes], places: _Places
    ) -> None:
        with writing:
            if portion.docs:
                self._add(db, portion, packed, places)

    def _add(self, db: sqlite3.Connection, portion: Portion, packed: list[bytes], places: _Places) -> None:
        self._number_paths(db, {path for doc in portion.docs for path in doc.passage.files})
        last = max((row[0] for row in db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'texts'")), default=0)
        rowids = Rowids(db, (doc.at for doc in portion.docs))
        docs: list[tuple[Any, ...]] = []
        words: list[tuple[int, str]] = []
        touched: list[tuple[int, int]] = []
        for (at, session, step, entry, passage, hash), (bundle, number) in zip(portion.docs, places, strict=True):
            id, at = rowids.assign(at)
            docs.append((id, at, *columns_of(session, step, entry, passage, hash), last + 1 + bundle, number))
            words.append((id, passage.text))
            if passage.files:
                touched += [(self._paths[path], id) for path in set(passage.files)]
        rowids.remember()
        _insert(db, "INSERT INTO docs", sorted(docs))
        _insert(db, "INSERT INTO texts", list(enumerate(packed, last + 1)))
        _insert(db, "INSERT INTO words (rowid, text)", sorted(words))
        _insert(db, "INSERT OR IGNORE INTO touched", touched)

    def _number_paths(self, db: sqlite3.Connection, paths: set[str]) -> None:
        """Assign numbers to new paths."""
        if len(self._paths) > _PATHS:
            self._paths.clear()
        new = [(path,) for path in sorted(paths - self._paths.keys())]
        _insert(db, "INSERT OR IGNORE INTO paths (path)", new)
        for begin in range(0, len(new), _ROWS):
            some = [path for (path,) in new[begin : begin + _ROWS]]
            rows = db.execute(f"SELECT path, id FROM paths WHERE path IN ({','.join('?' * len(some))})", some)
            self._paths.update(rows.fetchall())


def _delete_texts(db: sqlite3.Connection, gone: list[int]) -> None:
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
    """Insert as many rows with each statement as possible.

    A thread waits for the interpreter lock before each statement, and FTS5 writes a segment for each with several rows.
    """
    at_once = _VALUES // len(rows[0]) if rows else 1
    for begin in range(0, len(rows), at_once):
        some = rows[begin : begin + at_once]
        row = f"({','.join('?' * len(some[0]))})"
        db.execute(f"{what} VALUES {','.join([row] * len(some))}", list(chain.from_iterable(some)))
