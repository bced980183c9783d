"""The tables of the catalog, as those who look for something see them: here SQLite's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from turnlog.catalog.ask.cards import CardMaker, card_by_ids
from turnlog.catalog.ask.filters import Clause, TimeSpan, regexp
from turnlog.catalog.ask.query import Term
from turnlog.catalog.ask.terms import phrases_of
from turnlog.catalog.index.texts import text_of, unpack

if TYPE_CHECKING:
    from turnlog.catalog.values import Card

SHIFT = 20
"""The id of an entry is its time in milliseconds, shifted by so many bits, and a number."""


class EntryMatch(NamedTuple):
    """An entry that may be what was looked for."""

    id: int
    session: int
    step: int
    entry: str
    role: str
    tools: str
    text: str | None
    """Where it was asked for."""


class Wanted(NamedTuple):
    """What is looked for: words that an index knows, and conditions."""

    terms: tuple[Term, ...]
    sessions: Clause
    entries: Clause
    span: TimeSpan = TimeSpan()

    def ids(self, before: int | None = None) -> tuple[int, int]:
        """The entries of that time, from and before."""
        since, until = self.span
        first = -(1 << 62) if since is None else _bounded(since)
        last = (1 << 63) - 1 if until is None else _bounded(until)
        return first, last if before is None else min(last, before)


class EntryIndex(Protocol):
    """Where entries are looked up."""

    sure: frozenset[str]
    """The kinds of terms of which its index tells all; others have to be looked for in the text."""
    patience: int
    """So many characters of text are read for one question; then it is said that there may be more."""

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """Entries that may be meant, the newest first: those that have what the index knows."""
        ...

    def with_entries(self, wanted: Wanted) -> Clause:
        """Which sessions have such entries, as a condition."""
        ...

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """What was said."""
        ...

    def cards(self, sessions: Iterable[int]) -> dict[int, Card]:
        """Those sessions."""
        ...

    def newest(self, sessions: Iterable[int]) -> dict[int, int]:
        """The last step of each."""
        ...

    def in_state(self, states: frozenset[str]) -> list[int]:
        """The sessions that are in one of these states now."""
        ...


def _bounded(at: int) -> int:
    return min(max(at, -(1 << 42)), (1 << 43) - 1) << SHIFT


def shelf_of(db: sqlite3.Connection) -> EntryIndex:
    """The shelf that a connection leads to: SQLite's, or what speaks like one."""
    if isinstance(db, sqlite3.Connection):  # pyright: ignore[reportUnnecessaryIsInstance]
        return SqliteShelf(db)
    from turnlog.catalog.index.postgres import PostgresShelf

    return PostgresShelf(db)


class SqliteShelf:
    """The tables of `schema.py`."""

    sure: frozenset[str] = frozenset(("word", "phrase", "prefix"))
    patience = 256 << 20

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.create_function("regexp", 2, regexp, deterministic=True)

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """See `EntryIndex.entries`."""
        tables, where = self._matching(wanted, before)
        order = f"{tables.split()[0]}.rowid DESC" + ("" if limit is None else f" LIMIT {limit}")
        if with_text:
            tables += " CROSS JOIN texts ON texts.id = docs.id"
        data = "texts.data" if with_text else "NULL"
        sql = (
            f"SELECT docs.id, docs.session, docs.step, docs.entry, docs.role, docs.tool, {data} "
            f"FROM {tables} WHERE {where.sql} ORDER BY {order}"
        )
        for id, session, step, entry, role, tools, packed in self.db.execute(sql, where.values):
            yield EntryMatch(id, session, step, entry, role, tools, unpack(packed) if with_text else None)

    def with_entries(self, wanted: Wanted) -> Clause:
        """See `EntryIndex.with_entries`."""
        tables, where = self._matching(wanted._replace(sessions=Clause()), None, with_sessions=False)
        return Clause(f"sessions.id IN (SELECT docs.session FROM {tables} WHERE {where.sql})", where.values)

    def _matching(self, wanted: Wanted, before: int | None, *, with_sessions: bool = True) -> tuple[str, Clause]:
        first, last = wanted.ids(before)
        matches, misses = expressions(wanted.terms)
        # CROSS JOIN: in this order, so that the newest come first without sorting.
        if matches:
            tables = "words CROSS JOIN docs ON docs.id = words.rowid"
            whole = " NOT ".join([f"({matches})", *misses])
            where = Clause("words MATCH ? AND words.rowid >= ? AND words.rowid < ?", (whole, first, last))
        else:
            tables = "docs"
            where = Clause("docs.id >= ? AND docs.id < ?", (first, last))
            if misses:
                inside = "docs.id NOT IN (SELECT words.rowid FROM words WHERE words MATCH ?)"
                where = where.and_(Clause(inside, (" OR ".join(misses),)))
        if with_sessions:
            tables += " CROSS JOIN sessions ON sessions.id = docs.session"
            where = where.and_(Clause("NOT sessions.is_deleted AND NOT sessions.is_copied"))
        return tables, where.and_(wanted.entries).and_(wanted.sessions)

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """See `EntryIndex.texts`."""
        return {one: text_of(self.db, one) for one in ids}

    def cards(self, sessions: Iterable[int]) -> dict[int, Card]:
        """See `EntryIndex.cards`."""
        return card_by_ids(self.db, list(sessions))

    def newest(self, sessions: Iterable[int]) -> dict[int, int]:
        """See `EntryIndex.newest`."""
        sql = "SELECT max(step) FROM docs WHERE session = ?"
        return {one: self.db.execute(sql, (one,)).fetchone()[0] or 0 for one in sessions}

    def in_state(self, states: frozenset[str]) -> list[int]:
        """See `EntryIndex.in_state`."""
        look = CardMaker()
        rows = self.db.execute("SELECT id, is_ours, ending, writer, updated FROM sessions")
        return [one for one, *facts in rows if look.state(*facts) in states]


def expressions(terms: Iterable[Term]) -> tuple[str, list[str]]:
    """What FTS5 can tell of these terms: what has to be there, and what must not be. Only words, each in quotes."""
    matches: list[str] = []
    misses: list[str] = []
    for term in terms:
        for words, goes_on in phrases_of(term):
            phrase = f'"{" ".join(words)}"{" *" if goes_on else ""}'
            if not term.negated:
                matches.append(phrase)
            elif term.kind in SqliteShelf.sure:
                misses.append(phrase)
    return " AND ".join(matches), misses
