"""What was read, on its way into an index: a portion at a time, each written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from turnlog.catalog.index.columns import lines
from turnlog.catalog.index.notes import DIRTY, set_flag_sql
from turnlog.catalog.index.prices import Prices
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.catalog.index.engine import Engine
    from turnlog.catalog.index.rows import SessionRow, SpentRow, ToolUseRow

FOREVER = (1 << 63) - 1
BEYOND = 1 << 40
"""Rows from this step on belong to no entry: totals of a session, spending that only a copy has, notes on it."""


class IndexedSession(NamedTuple):
    """What the index already has of a session."""

    id: int
    native: str
    size: int
    title: str | None
    preview: str
    resume_point: bytes | None
    """The saved state of reading: see `read/intake.py`."""
    inode: int


class Passage(NamedTuple):
    """The searchable content of an entry."""

    role: str
    text: str
    tools: list[str]
    files: list[str]


class Doc(NamedTuple):
    """An entry with text. Docs are sorted by time."""

    at: int
    session: int
    step: int
    entry: str
    passage: Passage
    hash: int


class Portion:
    """What is written in one transaction."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[Any, ...]]] = []
        """Statements on other tables, in their order."""
        self.deleted_docs: list[int] = []
        self.docs: list[Doc] = []
        self.spent: list[SpentRow] = []
        self.used: list[ToolUseRow] = []
        self.size = 0


def columns_of(session: int, step: int, entry: str, passage: Passage, hash: int) -> tuple[Any, ...]:
    """The columns of `docs` that both engines have."""
    return session, step, entry, passage.role, lines(passage.tools) if passage.tools else "", hash


class PortionWriter(Protocol):
    """Writes portions into the tables of an engine."""

    most: int
    """The number of characters written in one transaction."""

    def write(self, portion: Portion) -> None:
        """Write a portion whole or not at all; its texts are sorted."""
        ...

    def wait(self) -> None:
        """Return when everything passed to `write` is in the tables."""
        ...


class Batch:
    """Collects rows, and writes them a portion at a time."""

    def __init__(self, db: Engine, writer: PortionWriter) -> None:
        self.db = db
        self.prices = Prices(db)
        self._writer = writer
        self._portion = Portion()

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """Execute a statement with the rest of the portion."""
        self._portion.statements.append((statement, values))

    def add(self, doc: Doc) -> None:
        """Add a text."""
        self._portion.docs.append(doc)
        self._portion.size += len(doc.passage.text)
        if self._portion.size >= self._writer.most:
            self.flush()

    def add_rows(self, docs: list[Doc], spent: list[SpentRow], used: list[ToolUseRow], size: int) -> None:
        """Add rows that another process read, with `size` characters of text."""
        portion = self._portion
        portion.docs += docs
        portion.spent += spent
        portion.used += used
        portion.size += size
        if portion.size >= self._writer.most:
            self.flush()

    def delete_text(self, doc: int) -> None:
        """Delete a text."""
        self._portion.deleted_docs.append(doc)

    def add_spent(self, row: SpentRow) -> None:
        """Add the cost of a request."""
        self._portion.spent.append(row)

    def add_tool_use(self, row: ToolUseRow) -> None:
        """Add a use of a tool, if the engine has a table for it."""
        if self.db.keeps_details:
            self._portion.used.append(row)

    def drop_used(self, session: int, first: int) -> None:
        """Delete the uses of tools from a step on."""
        if self.db.keeps_details:
            self.execute("DELETE FROM used WHERE session = ? AND step >= ?", (session, first))

    def docs(self, session: int) -> Iterable[tuple[Any, ...]]:
        """The texts that the index has of a session: row, time, step, entry and hash of each."""
        db = self.db
        docs = f"SELECT id, {db.at}, step, entry, hash FROM {db.table('docs')} WHERE session = {db.placeholder}"
        return db.rows(docs, (session,))

    def flag(self, key: str) -> None:
        """Set a flag in the notes of the index."""
        self.execute(set_flag_sql(self.db), (key,))

    def mark_dirty(self) -> None:
        """Mark the index as unsettled."""
        self.flag(DIRTY)

    def put(self, session: int, row: SessionRow) -> None:
        """Update the row of a session."""
        columns = ", ".join(f"{name} = {self.db.placeholder}" for name in row)
        sql = f"UPDATE {self.db.table('sessions')} SET {columns} WHERE id = {self.db.placeholder}"
        self.execute(sql, (*row.values(), session))

    def drop_spent(self, session: int, first: int) -> None:
        """Delete the spending of a session from a step on."""
        self.execute(self.db.drop_spent, (session, first, FOREVER))

    def flush(self) -> None:
        """Write the current portion."""
        portion, self._portion = self._portion, Portion()
        if portion.statements or portion.deleted_docs or portion.docs or portion.spent or portion.used:
            portion.docs.sort(key=_order)
            self._writer.write(portion)

    def write_out(self) -> None:
        """Write the current portion, and return when it can be read from the tables."""
        self.flush()
        self._writer.wait()


def _order(doc: Doc) -> tuple[int, int, int]:
    return doc[:3]
