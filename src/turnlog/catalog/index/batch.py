"""What was read, on its way into the tables: a portion at a time, whole or not at all, in the order that FTS5 likes."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.catalog.index.database import Database
from turnlog.catalog.index.schema import COUNTS
from turnlog.catalog.index.texts import clean, digest, lines, pack_all, place, unpack
from turnlog.catalog.read.prices import Prices
from turnlog.catalog.watch.sweep import Stamp

if TYPE_CHECKING:
    import sqlite3
    from concurrent.futures import Future, ThreadPoolExecutor

    from turnlog.catalog.read.words import Passage

PORTION = 6 << 20
"""So many characters are written at once: rows in the order of their ids, or FTS5 writes a segment for each session."""
_BITS = 20
_OBJECTS = 50_000
"""Python looks for garbage in circles after so many new objects while much is read: most are texts that wait."""
_VALUES = 32_000
"""SQLite takes so many in one statement."""
_ROWS = 400
_PATHS = 50_000
SPENT = (
    "INSERT OR IGNORE INTO spent (session, step, token, at, model, is_reported, is_total, cost, "
    + ", ".join(COUNTS)
    + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
"""Of several with the same token in a session the first one counts."""


class Doc(NamedTuple):
    """One entry that has text. Sorted by its time."""

    at: int
    session: int
    step: int
    entry: str
    said: Passage
    hash: int


class Old(NamedTuple):
    """A text that is in the catalog already."""

    id: int
    entry: str
    hash: int


class _Portion(NamedTuple):
    """What is written at once."""

    steps: list[tuple[str, tuple[Any, ...]]]
    gone: list[int]
    docs: list[Doc]
    packed: list[bytes]
    """Their texts, compressed."""
    spent: list[tuple[Any, ...]]


class Batch:
    """Collects, and writes when it is enough.

    Where there is much, one portion is written while the next is read: SQLite and zstd let Python go on meanwhile. The
    thread has a connection of its own.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.prices = Prices(database.connection)
        self._pool: ThreadPoolExecutor | None = None
        self._writer: Database | None = None
        self._written: Future[None] | None = None
        self._collecting: tuple[int, int, int] | None = None
        """How often Python looked for garbage before."""
        self._docs: list[Doc] = []
        self._gone: list[int] = []
        self._spent: list[tuple[Any, ...]] = []
        self._steps: list[tuple[str, tuple[Any, ...]]] = []
        """Statements on other tables, in their order."""
        self._size = 0
        self.has_failed = False
        """Whether something could not be written."""
        self._paths: dict[str, int] = {}

    def do(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """A statement to be carried out with the rest of the portion."""
        self._steps.append((statement, values))

    def add(self, doc: Doc) -> None:
        """A text."""
        self._docs.append(doc)
        self._size += len(doc.said.text)
        if self._size >= PORTION:
            self.flush()

    def forget(self, doc: int) -> None:
        """A text that is no longer there."""
        self._gone.append(doc)

    def pay(self, row: tuple[Any, ...]) -> None:
        """What a request cost: a row of `spent`."""
        self._spent.append(row)

    def stamp(self, path: str, agent: str, stamp: Stamp, *, is_watched: bool = True) -> None:
        """How a file looked before it was read."""
        self.do(
            "INSERT INTO files (path, agent, is_foreign, is_watched, size, mtime, inode) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (path) DO UPDATE SET is_watched = excluded.is_watched, size = excluded.size, "
            "mtime = excluded.mtime, inode = excluded.inode, agent = excluded.agent",
            (place(path), agent, bool(agent), is_watched, *stamp),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self._docs or self._gone or self._spent or self._steps)

    def begin_many(self) -> None:
        """There is much to come."""
        import gc
        from concurrent.futures import ThreadPoolExecutor

        self._collecting = gc.get_threshold()
        gc.set_threshold(max(self._collecting[0], _OBJECTS), *self._collecting[1:])
        self._writer = Database(self._database.path, statements=0)
        self._pool = ThreadPoolExecutor(1)

    def end(self) -> None:
        """Write what is left, and wait until it is there."""
        self.flush()
        self._wait()

    def close(self) -> None:
        """Let go of thread and connection, whatever happened."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._writer is not None:
            self._writer.close()
        if self._collecting is not None:
            import gc

            gc.set_threshold(*self._collecting)

    def flush(self) -> None:
        """Write what there is."""
        if self.is_empty:
            return
        docs = sorted(self._docs, key=_order)
        # Here, and not where it is written: that takes longer than to read it, so this side has the time.
        portion = _Portion(self._steps, self._gone, docs, pack_all([doc.said.text for doc in docs]), self._spent)
        self._docs, self._gone, self._spent, self._steps, self._size = [], [], [], [], 0
        self.has_failed = True
        self._wait()
        with ExitStack() as stack:
            db = stack.enter_context((self._writer or self._database).writing())
            self._begin(db, portion)
            rest = stack.pop_all()
        if self._pool is None:
            self._finish(rest, db, portion)
        else:
            self._written = self._pool.submit(self._finish, rest, db, portion)
        self.has_failed = False

    def _wait(self) -> None:
        if self._written is not None:
            self._written.result()

    def _begin(self, db: sqlite3.Connection, portion: _Portion) -> None:
        """What takes many small statements; a thread would wait for Python before each."""
        for statement, values in portion.steps:
            db.execute(statement, values)
        self._forget(db, portion.gone)
        db.executemany(SPENT, portion.spent)

    def _finish(self, writing: ExitStack, db: sqlite3.Connection, portion: _Portion) -> None:
        with writing:
            self._add(db, portion.docs, portion.packed)

    def _forget(self, db: sqlite3.Connection, gone: list[int]) -> None:
        if not gone:
            return
        for doc in sorted(gone):
            row = db.execute("SELECT data FROM texts WHERE id = ?", (doc,)).fetchone()
            if row is not None:
                db.execute("INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", (doc, unpack(row[0])))
        ids = [(doc,) for doc in gone]
        for table in ("texts", "docs"):
            db.executemany(f"DELETE FROM {table} WHERE id = ?", ids)
        db.executemany("DELETE FROM touched WHERE doc = ?", ids)

    def _add(self, db: sqlite3.Connection, found: list[Doc], packed: list[bytes]) -> None:
        if not found:
            return
        free = _free(db, found)
        self._learn(db, {clean(path) for doc in found for path in doc.said.files})
        docs: list[tuple[Any, ...]] = []
        touched: list[tuple[int, int]] = []
        for at, session, step, entry, said, hash in found:
            number = _number(free, at)
            tools = lines(said.tools) if said.tools else ""
            docs.append((number, session, step, clean(entry), said.role, tools, hash))
            touched += [(self._paths[clean(path)], number) for path in set(said.files)]
        ids, texts = [doc[0] for doc in docs], [doc.said.text for doc in found]
        _insert(db, "INSERT INTO docs", docs)
        _insert(db, "INSERT INTO texts", list(zip(ids, packed, strict=True)))
        _insert(db, "INSERT INTO words (rowid, text)", list(zip(ids, texts, strict=True)))
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


def _insert(db: sqlite3.Connection, what: str, rows: list[tuple[Any, ...]]) -> None:
    """As many rows as can be with each statement.

    Who writes in a thread waits for Python before each of them, and FTS5 writes a segment for each that has several.
    """
    at_once = _VALUES // len(rows[0]) if rows else 1
    for begin in range(0, len(rows), at_once):
        some = rows[begin : begin + at_once]
        row = f"({','.join('?' * len(some[0]))})"
        db.execute(f"{what} VALUES {','.join([row] * len(some))}", list(chain.from_iterable(some)))


def _free(db: sqlite3.Connection, docs: list[Doc]) -> dict[int, int]:
    """The next free id at each time of these texts."""
    times = sorted({doc.at for doc in docs})
    rows = db.execute(
        "SELECT j.value, (SELECT max(id) FROM docs WHERE id >= j.value << 20 AND id < (j.value + 1) << 20) "
        "FROM json_each(?) j",
        (str(times),),
    )
    return {at: at << _BITS if last is None else last + 1 for at, last in rows}


def _number(free: dict[int, int], at: int) -> int:
    """An id that nobody has, at that time or as soon after it as there is one."""
    while (found := free.get(at, at << _BITS)) >= (at + 1) << _BITS:
        at += 1
    free[at] = found + 1
    return found


def _order(doc: Doc) -> tuple[int, int, int]:
    return doc[:3]


def token_of(request: str | None, entry: str) -> int:
    """What tells a request from others: even for its own id, odd for that of its entry."""
    if request is not None:
        return digest("r" + request) & ~1
    return digest("e" + entry) | 1
