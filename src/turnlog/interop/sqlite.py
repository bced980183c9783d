"""Databases of other agents: opened to be read, never written to, and trusted with nothing.

Only columns that are stored in real tables are read: a view or a generated column is a program of whoever made the
file. What one value may be, and how much work and how many rows a file may take, is bounded by its size.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from turnlog.interop.folder import at_once

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged database raises; its messages may quote bytes of the file."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 64 << 20, sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 500, sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100, sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20, sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 20,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1, sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}  # fmt: skip
_PRAGMAS = ("trusted_schema = off", "query_only = on", "cell_size_check = on", "mmap_size = 0")
_TABLES = 1000
_STEP = 10_000
_STEPS, _STEPS_PER_BYTE = 50_000_000, 20
"""How many steps of its virtual machine SQLite may take for one file. It takes a hundred million in a second or two."""
_ROWS, _BYTES_PER_ROW = 100_000, 4
_BYTES, _BYTES_PER_BYTE = 16 << 20, 20
_WHILE_S = 60
"""After so long, a file has its whole budget again."""


class TooMuch(sqlite3.OperationalError):
    """Reading a file takes more work than is allowed for its size."""


class _Budget(Struct):
    steps: int
    rows: int
    size: int
    since: float


_budgets: dict[tuple[str, int], _Budget] = {}
_mutex = threading.Lock()


def _budget_of(path: str) -> _Budget:
    """The budget of a file, shared by everything that reads it: one session after the other, or all at once."""
    size = os.stat(path).st_size
    now = time.monotonic()
    limits = _Budget(
        _STEPS + _STEPS_PER_BYTE * size, _ROWS + size // _BYTES_PER_ROW, _BYTES + _BYTES_PER_BYTE * size, now
    )
    with _mutex:
        for key in [key for key, budget in _budgets.items() if now - budget.since > _WHILE_S]:
            del _budgets[key]
        return _budgets.setdefault((path, size), limits)


class ForeignDatabase:
    """Another agent's database, open."""

    def __init__(self, base: sqlite3.Connection, budget: _Budget) -> None:
        self._base = base
        self._budget = budget
        self.columns: dict[str, list[str]] = {}
        """The stored columns of every real table."""
        for name, sql in base.execute("select name, sql from sqlite_schema where type = 'table' and rootpage > 0"):
            if len(self.columns) < _TABLES and isinstance(name, str) and isinstance(sql, str):
                self.columns[name] = []
        for name, stored in self.columns.items():
            rows = base.execute("select name from pragma_table_xinfo(?) where hidden = 0", (name,))
            stored += [str(row[0]) for row in rows]

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with these columns."""
        return set(columns) <= set(self.columns.get(table, ())) and table in self.columns

    def rows(
        self, table: str, where: str = "", values: Sequence[Any] = (), *, only: Sequence[str] = (), order: str = ""
    ) -> Iterator[sqlite3.Row]:
        """Rows of a table: all its stored columns, or only some; none where there is no such table."""
        names = [name for name in self.columns.get(table, ()) if not only or name in only]
        if names:
            listed = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
            tail = (f" where {where}" if where else "") + (f" order by {order}" if order else "")
            yield from self.ask(f"select {listed} from {table}{tail}", values)

    def row(
        self, table: str, where: str, values: Sequence[Any] = (), *, only: Sequence[str] = (), order: str = ""
    ) -> dict[str, Any]:
        """The first of those rows as a dict; empty where there is none."""
        return next((dict(row) for row in self.rows(table, where, values, only=only, order=order)), dict[str, Any]())

    def ask(self, sql: str, values: Sequence[Any] = ()) -> Iterator[sqlite3.Row]:
        """The answer to a question of ours, about tables and columns that were looked at."""
        budget = self._budget
        try:
            for row in self._base.execute(sql, values):
                budget.rows -= 1
                budget.size -= sum(len(value) for value in row if isinstance(value, (str, bytes)))
                if budget.rows < 0 or budget.size < 0:
                    raise TooMuch("it gives more than a file of its size can hold")
                yield row
        except sqlite3.OperationalError:
            if budget.steps < 0:
                raise TooMuch("it takes longer to read than a file of its size may") from None
            raise


@contextmanager
def opened(path: str, *, wait_s: float = 5) -> Generator[ForeignDatabase]:
    """A database to read from. Raises one of `ERRORS`, or `OSError`."""
    if not os.path.isfile(path):  # SQLite waits for what writes into a pipe
        raise FileNotFoundError(errno.ENOENT, "there is no such file", path)
    budget = _budget_of(path)
    base = _connected(path, budget, wait_s)
    try:
        yield ForeignDatabase(base, budget)
    finally:
        base.close()


def _connected(path: str, budget: _Budget, wait_s: float) -> sqlite3.Connection:
    """Read-only; where the folder cannot be written to, without the log that others may be writing.

    A database that is only busy is not read that way: whoever is writing it would be read half-way.
    """
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        return _guarded(sqlite3.connect(f"file:{escaped}?mode=ro", uri=True, timeout=wait_s), budget)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        return _guarded(sqlite3.connect(f"file:{escaped}?mode=ro&immutable=1", uri=True, timeout=wait_s), budget)


def _guarded(base: sqlite3.Connection, budget: _Budget) -> sqlite3.Connection:
    def is_enough() -> bool:
        budget.steps -= _STEP
        return budget.steps < 0

    try:
        for limit, most in _LIMITS.items():
            base.setlimit(limit, most)
        base.set_progress_handler(is_enough, _STEP)
        for pragma in _PRAGMAS:
            base.execute(f"pragma {pragma}")
        base.row_factory = sqlite3.Row
        base.text_factory = _text
        base.execute("select count(*) from sqlite_schema").fetchall()
    except BaseException:
        base.close()
        raise
    return base


def is_database(path: str, **tables: Sequence[str]) -> bool:
    """Whether a file is SQLite and has these tables with these columns, stored."""
    try:
        with open(path, "rb", opener=at_once) as file:
            if file.read(16) != b"SQLite format 3\0":
                return False
        with opened(path) as base:
            return all(base.has(table, *names) for table, names in tables.items())
    except (OSError, *ERRORS):
        return False


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
