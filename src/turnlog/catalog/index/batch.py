"""What was read, on its way into an index: a portion at a time, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from turnlog.catalog.index import bundle
from turnlog.catalog.index.notes import DIRTY, flag
from turnlog.catalog.index.prices import Prices
from turnlog.catalog.index.texts import SHIFT, lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.catalog.index.engine import Engine

FOREVER = (1 << 63) - 1


class Before(NamedTuple):
    """What the index knows of a session already."""

    id: int
    native: str
    size: int
    title: str | None
    preview: str
    mark: bytes | None
    inode: int


class Passage(NamedTuple):
    """One entry as it is looked for."""

    role: str
    text: str
    tools: list[str]
    files: list[str]


class Doc(NamedTuple):
    """One entry that has text. Sorted by its time."""

    at: int
    session: int
    step: int
    entry: str
    said: Passage
    hash: int


class Portion:
    """What is written at once."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[Any, ...]]] = []
        """Statements on other tables, in their order."""
        self.gone: list[int] = []
        self.docs: list[Doc] = []
        self.spent: list[tuple[Any, ...]] = []
        self.used: list[tuple[Any, ...]] = []
        self.size = 0

    def rows(self, taken: dict[int, int | None]) -> list[tuple[Any, ...]]:
        """The texts as rows of `docs`: each has an id that nobody has. `taken` is the last one at each of the times."""
        free = {at: at << SHIFT if last is None else last + 1 for at, last in taken.items()}
        rows: list[tuple[Any, ...]] = []
        for at, session, step, entry, passage, hash in self.docs:
            # As soon after its time as there is room.
            while (number := free.get(at, at << SHIFT)) >= (at + 1) << SHIFT:
                at += 1
            free[at] = number + 1
            rows.append((number, *columns_of(session, step, entry, passage, hash)))
        return rows

    def bundles(self) -> tuple[list[bytes], list[tuple[int, int]]]:
        """The texts packed, those of a session together; and of each the bundle and its number there."""
        docs = self.docs
        bundles: list[list[str]] = []
        places = [(0, 0)] * len(docs)
        room = 0
        for doc in sorted(range(len(docs)), key=lambda doc: docs[doc][1:3]):
            if room <= 0:
                bundles.append([])
                room = bundle.SIZE
            places[doc] = (len(bundles) - 1, len(bundles[-1]))
            bundles[-1].append(docs[doc].said.text)
            room -= len(docs[doc].said.text)
        return bundle.packed(bundles), places


def columns_of(session: int, step: int, entry: str, said: Passage, hash: int) -> tuple[Any, ...]:
    """What both engines have in a row of `docs`."""
    return session, step, entry, said.role, lines(said.tools) if said.tools else "", hash


class PortionWriter(Protocol):
    """What brings portions into the tables of an engine."""

    most: int
    """How many characters are written in one transaction."""

    def write(self, portion: Portion) -> None:
        """All of it or nothing; its texts are in their order."""
        ...


class Batch:
    """Collects, and has it written when it is enough."""

    def __init__(self, db: Engine, writer: PortionWriter) -> None:
        self.db = db
        self.prices = Prices(db)
        self._writer = writer
        self._portion = Portion()

    def do(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """A statement to be carried out with the rest of the portion."""
        self._portion.steps.append((statement, values))

    def add(self, doc: Doc) -> None:
        """A text."""
        self._portion.docs.append(doc)
        self._portion.size += len(doc.said.text)
        if self._portion.size >= self._writer.most:
            self.flush()

    def take_in(self, docs: list[Doc], spent: list[tuple[Any, ...]], used: list[tuple[Any, ...]], size: int) -> None:
        """What somebody else read; so many characters."""
        portion = self._portion
        portion.docs += docs
        portion.spent += spent
        portion.used += used
        portion.size += size
        if portion.size >= self._writer.most:
            self.flush()

    def forget(self, doc: int) -> None:
        """A text that is no longer there."""
        self._portion.gone.append(doc)

    def pay(self, row: tuple[Any, ...]) -> None:
        """What a request cost: a row of `spent`."""
        self._portion.spent.append(row)

    def use(self, row: tuple[Any, ...]) -> None:
        """What a tool did: a row of `used`, where there is such a table."""
        if self.db.keeps_details:
            self._portion.used.append(row)

    def drop_used(self, session: int, first: int) -> None:
        """What tools did from that step on."""
        if self.db.keeps_details:
            self.do("DELETE FROM used WHERE session = ? AND step >= ?", (session, first))

    def docs(self, session: int) -> Iterable[tuple[Any, ...]]:
        """The texts of a session that the index has: row, time, step, entry, and the sum of each."""
        docs = f"SELECT id, {self.db.at}, step, entry, hash FROM {self.db.table('docs')} WHERE session = {self.db.mark}"
        return self.db.rows(docs, (session,))

    def flag(self, key: str) -> None:
        """Note that something is so."""
        self.do(flag(self.db), (key,))

    def mark_dirty(self) -> None:
        """From here on something is not settled."""
        self.flag(DIRTY)

    def put(self, session: int, row: dict[str, Any]) -> None:
        """What is known of a session."""
        columns = ", ".join(f"{name} = {self.db.mark}" for name in row)
        sql = f"UPDATE {self.db.table('sessions')} SET {columns} WHERE id = {self.db.mark}"
        self.do(sql, (*row.values(), session))

    def drop_spent(self, session: int, first: int) -> None:
        """What it spent from that step on."""
        self.do(self.db.drop_spent, (session, first, FOREVER))

    def flush(self) -> None:
        """Write what there is."""
        portion, self._portion = self._portion, Portion()
        if portion.steps or portion.gone or portion.docs or portion.spent or portion.used:
            portion.docs.sort(key=_order)
            self._writer.write(portion)


def _order(doc: Doc) -> tuple[int, int, int]:
    return doc[:3]
