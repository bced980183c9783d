"""How SQLite is asked: the tables of `schema.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.conditions import Clause, Condition
from turnlog.catalog.index.texts import unpack
from turnlog.catalog.index.where import where

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from turnlog.catalog.index.terms import Term
    from turnlog.catalog.index.wanted import EntryMatch, Wanted


_MANY = 10_000
_SHORTEST, _SHORT = 4, 6
"""Of a word of so many letters no other is near, and of one of so many only one that differs in one letter."""


class SqliteEngine:
    """See `Engine`."""

    sure: frozenset[str] = frozenset(("word", "phrase", "prefix"))
    patience = 256 << 20
    keeps_details = True
    mark, like, regexp = "?", "LIKE", "REGEXP"
    drop_spent = "DELETE FROM spent WHERE session = ? AND step BETWEEN ? AND ?"
    drop_quarters = "DELETE FROM quarters WHERE session = ?"
    drop_note = "DELETE FROM meta WHERE key = ?"

    def __init__(self, db: sqlite3.Connection, terms: dict[object, list[tuple[str, int]]] | None = None) -> None:
        self.db = db
        self._terms = {} if terms is None else terms
        """The words with one first letter, as of one state of the index: kept by whoever asks again."""

    def table(self, name: str, alias: str = "") -> str:
        """See `Engine.table`."""
        return f"{name} AS {alias}" if alias else name

    def among(self, column: str) -> str:
        """See `Engine.among`."""
        return f"{column} IN (SELECT value FROM json_each(?))"

    def rows(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """See `Engine.rows`."""
        return self.db.execute(sql, [str(value) if isinstance(value, list) else value for value in values])  # pyright: ignore[reportUnknownArgumentType]

    def run(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """See `Engine.run`."""
        self.db.executemany(sql, rows)

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """See `Engine.entries`."""
        from turnlog.catalog.index.wanted import EntryMatch

        tables, inside = self._matching(wanted, before)
        tables += " CROSS JOIN sessions ON sessions.id = docs.session"
        flags = [Condition("not", name) for name in ("sessions.is_deleted", "sessions.is_copied", "docs.is_repeat")]
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

    def frequency(self, term: Term) -> int:
        """See `Engine.frequency`."""
        from turnlog.catalog.index.terms import phrases_of

        matches = " AND ".join(_phrase(words, goes_on) for words, goes_on in phrases_of(term))
        if not matches:
            return _MANY  # only the text tells
        sql = f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {_MANY})"
        return self.db.execute(sql, (matches,)).fetchone()[0]

    def nearest(self, word: str) -> str:
        """See `Engine.nearest`. The first letter is taken to be right."""
        from turnlog.catalog.index.terms import distance, words_of

        word = "".join(words_of(word))
        if len(word) < _SHORTEST:
            return ""
        most = 1 if len(word) <= _SHORT else 2
        near = (
            (distance(word, term, most), -doc, term)
            for term, doc in self._beginning_with(word[0])
            if abs(len(term) - len(word)) <= most
        )
        return min((candidate for candidate in near if candidate[0] <= most), default=(0, 0, ""))[2]

    def _beginning_with(self, letter: str) -> list[tuple[str, int]]:
        """The words that begin so, each with the number of entries that have it: to count those is what takes time."""
        state = (letter, self.db.execute("PRAGMA data_version").fetchone(), self.db.total_changes)
        if state not in self._terms:
            self.db.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'words', 'row')"
            )
            asked = "SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term < ?"
            words = self.db.execute(asked, (letter, letter + "\U0010ffff")).fetchall()
            self._terms.clear()
            self._terms[state] = words
        return self._terms[state]

    def having(self, wanted: Wanted) -> Clause:
        """See `Engine.having`."""
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
                phrase = _phrase(words, goes_on)
                if not term.negated:
                    matches.append(phrase)
                elif term.kind in self.sure:
                    misses.append(phrase)
        return " AND ".join(matches), misses


def _phrase(words: list[str], goes_on: bool) -> str:
    return f'"{" ".join(words)}"{" *" if goes_on else ""}'


def regexp(pattern: str, value: object) -> bool:
    """SQLite has none of its own."""
    import re

    return isinstance(value, str) and re.search(pattern, value, re.IGNORECASE | re.DOTALL) is not None
