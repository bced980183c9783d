"""The questions to an index, in SQLite's words: the tables of `schema.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.cards import CARD, CardMaker, ListingColumns
from turnlog.catalog.index.conditions import ANY, Clause, Condition
from turnlog.catalog.index.texts import unpack
from turnlog.catalog.index.where import where

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

    from turnlog.catalog.index.contract import EntryMatch, SpendingQuery, Wanted
    from turnlog.catalog.values import Card, ListingRow


class SqliteIndex:
    """See `Index` and `Words`."""

    sure: frozenset[str] = frozenset(("word", "phrase", "prefix"))
    patience = 256 << 20
    mark, like, regexp = "?", "LIKE", "REGEXP"

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.create_function("regexp", 2, _regexp, deterministic=True)

    def table(self, name: str) -> str:
        """See `Words.table`."""
        return name

    def cards(self, sessions: Condition = ANY, *, limit: int | None = None) -> list[Card]:
        """See `Index.cards`."""
        sql, values = where(self, sessions)
        most = "" if limit is None else f" LIMIT {int(limit)}"
        rows = self.db.execute(f"SELECT {CARD} FROM sessions WHERE {sql} ORDER BY updated DESC, native{most}", values)
        return list(map(CardMaker().card, rows))

    def cards_by_row(self, rows: Iterable[int]) -> dict[int, Card]:
        """See `Index.cards_by_row`."""
        look, sql = CardMaker(), f"SELECT {CARD}, id FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
        return {row[-1]: look.card(row[:-1]) for row in self.db.execute(sql, (str(list(rows)),))}

    def listing(self, sessions: Condition) -> list[ListingRow]:
        """See `Index.listing`."""
        sql, values = where(self, sessions)
        asked = ListingColumns()
        rows = self.db.execute(f"SELECT {asked.lines} FROM sessions WHERE {sql}", values)
        facts = f"SELECT {asked.facts} FROM sessions WHERE {sql} AND {asked.special}"
        return asked.listing(rows, lambda: self.db.execute(facts, values))

    def ids(self) -> list[str]:
        """See `Index.ids`."""
        return [row[0] for row in self.db.execute("SELECT native FROM sessions")]

    def count(self, sessions: Condition = ANY) -> int:
        """See `Index.count`."""
        sql, values = where(self, sessions)
        return self.db.execute(f"SELECT count(*) FROM sessions WHERE {sql}", values).fetchone()[0]

    def labels(self, column: str) -> dict[int, Any]:
        """See `Index.labels`."""
        return dict(self.db.execute(f"SELECT id, {column} FROM sessions WHERE {column} IS NOT NULL").fetchall())

    def newest(self, sessions: Iterable[int]) -> dict[int, int]:
        """See `Index.newest`."""
        sql = "SELECT max(step) FROM docs WHERE session = ?"
        return {one: self.db.execute(sql, (one,)).fetchone()[0] or 0 for one in sessions}

    def in_state(self, states: frozenset[str]) -> list[int]:
        """See `Index.in_state`."""
        look = CardMaker()
        rows = self.db.execute("SELECT id, is_ours, ending, writer, updated FROM sessions")
        return [one for one, *facts in rows if look.state(*facts) in states]

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """See `Index.texts`."""
        sql = "SELECT id, data FROM texts WHERE id IN (SELECT value FROM json_each(?))"
        return {one: unpack(data) for one, data in self.db.execute(sql, (str(list(ids)),))}

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """See `Index.entries`."""
        from turnlog.catalog.index.contract import EntryMatch

        tables, inside = self._matching(wanted, before)
        tables += " CROSS JOIN sessions ON sessions.id = docs.session"
        flags = Condition("not", "sessions.is_deleted"), Condition("not", "sessions.is_copied")
        sql, values = where(self, *flags, wanted.entries, wanted.sessions)
        order = f"{tables.split()[0]}.rowid DESC" + ("" if limit is None else f" LIMIT {limit}")
        if with_text:
            tables += " CROSS JOIN texts ON texts.id = docs.id"
        rows = self.db.execute(
            "SELECT docs.id, docs.session, docs.step, docs.entry, docs.role, docs.tool, "
            f"{'texts.data' if with_text else 'NULL'} FROM {tables} WHERE {inside.sql} AND {sql} ORDER BY {order}",
            inside.values + values,
        )
        for row in rows:
            yield EntryMatch(*row) if row[-1] is None else EntryMatch(*row[:-1], text=unpack(row[-1]))

    def having(self, wanted: Wanted) -> Clause:
        """See `Words.having`."""
        tables, inside = self._matching(wanted, None)
        sql, values = where(self, wanted.entries)
        sql = f"sessions.id IN (SELECT docs.session FROM {tables} WHERE {inside.sql} AND {sql})"
        return Clause(sql, inside.values + values)

    def _matching(self, wanted: Wanted, before: int | None) -> tuple[str, Clause]:
        """The tables to look into, and what words and times say."""
        first, last = wanted.ids(before)
        matches, misses = self._expressions(wanted)
        # CROSS JOIN: in this order, so that the newest come first without sorting.
        if matches:
            whole = " NOT ".join([f"({matches})", *misses])
            sql = "words MATCH ? AND words.rowid >= ? AND words.rowid < ?"
            return "words CROSS JOIN docs ON docs.id = words.rowid", Clause(sql, (whole, first, last))
        sql = "docs.id >= ? AND docs.id < ?"
        if not misses:
            return "docs", Clause(sql, (first, last))
        sql += " AND docs.id NOT IN (SELECT words.rowid FROM words WHERE words MATCH ?)"
        return "docs", Clause(sql, (first, last, " OR ".join(misses)))

    def _expressions(self, wanted: Wanted) -> tuple[str, list[str]]:
        """What FTS5 can tell of its terms: what has to be there, and what must not be. Only words, each in quotes."""
        from turnlog.catalog.index.terms import phrases_of

        matches: list[str] = []
        misses: list[str] = []
        for term in wanted.terms:
            for words, goes_on in phrases_of(term):
                phrase = f'"{" ".join(words)}"{" *" if goes_on else ""}'
                if not term.negated:
                    matches.append(phrase)
                elif term.kind in self.sure:
                    misses.append(phrase)
        return " AND ".join(matches), misses

    def spending(self, asked: SpendingQuery) -> list[tuple[Any, ...]]:
        """See `Index.spending`."""
        from turnlog.catalog.index.spending import spending

        return spending(self, asked, lambda sql, values: self.db.execute(sql, values).fetchall())


def _regexp(pattern: str, value: object) -> bool:
    """SQLite has none of its own."""
    import re

    return isinstance(value, str) and re.search(pattern, value, re.IGNORECASE | re.DOTALL) is not None
