"""Queries in SQLite: the tables of `schema.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.conditions import Clause, Condition
from turnlog.catalog.index.where import where

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from turnlog.catalog.index.lookup import EntryMatch, EntryQuery, TimeSpan
    from turnlog.catalog.index.sqlite.bundle import Bundle
    from turnlog.catalog.index.terms import Term


_MANY = 10_000
_BUNDLES = 32
"""How many bundles are cached unpacked: reading texts of sessions of one time alternates between theirs."""
_SHORTEST, _SHORT = 4, 6
"""Shorter words have no similar words; words up to the second length, only those that differ in one letter."""


class SqliteEngine:
    """See `Engine`."""

    sure: frozenset[str] = frozenset(("word", "phrase", "prefix"))
    patience = 256 << 20
    keeps_details = True
    placeholder, like, regexp, at = "?", "LIKE", "REGEXP", "docs.at"
    drop_spent = "DELETE FROM spent WHERE session = ? AND step BETWEEN ? AND ?"
    drop_quarters = "DELETE FROM quarters WHERE session = ?"
    drop_note = "DELETE FROM meta WHERE key = ?"

    def __init__(self, db: sqlite3.Connection, terms: dict[object, list[tuple[str, int]]] | None = None) -> None:
        self.db = db
        self._terms = {} if terms is None else terms
        """A cache of words by their first letter, for one state of the index. The caller shares it between engines."""
        self._bundles: dict[int, Bundle] = {}
        """The bundles that were unpacked last."""

    def table(self, name: str, alias: str = "") -> str:
        """See `Engine.table`."""
        return f"{name} AS {alias}" if alias else name

    def total(self, expression: str) -> str:
        """See `Engine.total`. `sum` fails beyond 64 bits; `total` adds floats, which are exact up to 53 bits."""
        return f"CAST(total({expression}) AS INTEGER)"

    def among_numbers(self, column: str) -> str:
        """See `Engine.among_numbers`."""
        return f"{column} IN (SELECT value FROM json_each(?))"

    def among_texts(self, column: str) -> str:
        """See `Engine.among_texts`."""
        return self.among_numbers(column)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """See `Engine.rows`."""
        return self.db.execute(sql, [_json_array(value) if isinstance(value, list) else value for value in values])  # pyright: ignore[reportUnknownArgumentType]

    def run(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """See `Engine.run`."""
        self.db.executemany(sql, rows)

    def entries(
        self, lookup: EntryQuery, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """See `Engine.entries`."""
        from turnlog.catalog.index.lookup import EntryMatch
        from turnlog.catalog.index.sqlite.rowid import ID, newest_first

        tables, inside = self._matching(lookup, before)
        tables += " CROSS JOIN sessions ON sessions.id = docs.session"
        flags = [Condition("not", name) for name in ("sessions.is_deleted", "sessions.is_copied", "docs.is_repeat")]
        sql, values = where(self, *flags, lookup.entries, lookup.sessions)
        rows = self.db.execute(
            f"SELECT {ID}, docs.session, docs.step, docs.entry, docs.role, docs.tool, docs.bundle, docs.number, "
            f"docs.id FROM {tables} WHERE {inside.sql} AND {sql} ORDER BY {tables.split()[0]}.rowid DESC",
            inside.values + values,
        )
        left = -1 if limit is None else limit
        for id, session, step, entry, role, tools, bundle, number, _ in newest_first(rows):
            if before is not None and id >= before:
                continue
            if left == 0:
                return
            left -= 1
            yield EntryMatch(id, session, step, entry, role, tools, self.text_in(bundle, number) if with_text else None)

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """See `Engine.texts`."""
        from turnlog.catalog.index.sqlite.rowid import id_of, rowid_of

        sql = f"SELECT id, at, bundle, number FROM docs WHERE {self.among_numbers('id')}"
        rows = self.rows(sql, (list(map(rowid_of, ids)),)).fetchall()
        return {id_of(rowid, at): self.text_in(bundle, number) for rowid, at, bundle, number in rows}

    def text_in(self, bundle: int, number: int) -> str:
        """The text with this number in a bundle."""
        stored = self.bundle(bundle)
        return "" if stored is None else stored.text(number)

    def bundle(self, number: int) -> Bundle | None:
        """A stored bundle; None if it was deleted since the query."""
        stored = self._bundles.pop(number, None)
        if stored is None:
            from turnlog.catalog.index.sqlite.bundle import Bundle

            row = self.db.execute("SELECT data FROM texts WHERE id = ?", (number,)).fetchone()
            if row is None:
                return None
            stored = Bundle(row[0])
            if len(self._bundles) >= _BUNDLES:
                del self._bundles[next(iter(self._bundles))]
        self._bundles[number] = stored
        return stored

    def frequency(self, term: Term) -> int:
        """See `Engine.frequency`."""
        from turnlog.catalog.index.terms import phrases_of

        matches = " AND ".join(_phrase(words, goes_on) for words, goes_on in phrases_of(term))
        if not matches:
            return _MANY  # for these, texts have to be read
        sql = f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {_MANY})"
        return self.db.execute(sql, (matches,)).fetchone()[0]

    def nearest(self, word: str) -> str:
        """See `Engine.nearest`. The first letter is assumed to be right."""
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
        """The words that begin with a letter, each with its number of entries. Cached: counting is slow."""
        state = (letter, self.db.execute("PRAGMA data_version").fetchone(), self.db.total_changes)
        if state not in self._terms:
            self.db.execute(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'words', 'row')"
            )
            sql = "SELECT term, doc FROM temp.vocabulary WHERE term >= ? AND term < ?"
            words = self.db.execute(sql, (letter, letter + "\U0010ffff")).fetchall()
            self._terms.clear()
            self._terms[state] = words
        return self._terms[state]

    def having(self, lookup: EntryQuery) -> Clause:
        """See `Engine.having`."""
        tables, inside = self._matching(lookup, None)
        sql, values = where(self, lookup.entries)
        sql = f"sessions.id IN (SELECT docs.session FROM {tables} WHERE {inside.sql} AND {sql})"
        return Clause(sql, inside.values + values)

    def _matching(self, lookup: EntryQuery, before: int | None) -> tuple[str, Clause]:
        """The tables to search, and the condition of words and times."""
        times, within = _times(lookup.span, before)
        matches, misses = self._expressions(lookup)
        # CROSS JOIN: in this order, so that the newest come first without sorting.
        if matches:
            whole = " NOT ".join([f"({matches})", *misses])
            sql = f"words MATCH ? AND {times.format('words.rowid')}"
            return "words CROSS JOIN docs ON docs.id = words.rowid", Clause(sql, (whole, *within))
        sql = times.format("docs.id")
        if not misses:
            return "docs", Clause(sql, within)
        sql += " AND docs.id NOT IN (SELECT words.rowid FROM words WHERE words MATCH ?)"
        return "docs", Clause(sql, (*within, " OR ".join(misses)))

    def _expressions(self, lookup: EntryQuery) -> tuple[str, list[str]]:
        """The FTS5 expression of required terms, and those of negated ones. Only words, each in quotes."""
        from turnlog.catalog.index.terms import phrases_of

        matches: list[str] = []
        misses: list[str] = []
        for term in lookup.terms:
            for words, goes_on in phrases_of(term):
                phrase = _phrase(words, goes_on)
                if not term.negated:
                    matches.append(phrase)
                elif term.kind in self.sure:
                    misses.append(phrase)
        return " AND ".join(matches), misses


def _times(span: TimeSpan, before: int | None) -> tuple[str, tuple[int, ...]]:
    """The condition on the time: on the rowid, so that other rows are not read, and on the time itself."""
    from turnlog.catalog.index.keys import SHIFT
    from turnlog.catalog.index.lookup import bounded
    from turnlog.catalog.index.sqlite.rowid import LAST, first_at

    conditions = ["TRUE"]
    within: list[int] = []
    if span.since is not None:
        since = bounded(span.since)
        conditions.append("{0} >= ? AND docs.at >= ?")
        within += first_at(since), since
    ends = [span.until] if span.until is not None else []
    if before is not None:
        ends.append((before - 1 >> SHIFT) + 1)
    if ends:
        until = bounded(min(ends))
        conditions.append(f"{{0}} <= ? + {LAST} AND docs.at < ?")
        within += first_at(until - 1), until
    return " AND ".join(conditions), tuple(within)


def _json_array(values: list[int] | list[str]) -> str:
    """A list as one value of a statement. Python prints lists of integers as JSON does; texts need the module."""
    if not values or isinstance(values[0], int):
        return str(values)
    from json import dumps

    return dumps(values)


def _phrase(words: list[str], goes_on: bool) -> str:
    return f'"{" ".join(words)}"{" *" if goes_on else ""}'


def regexp(pattern: str, value: object) -> bool:
    """The function `regexp`, which SQLite leaves to applications."""
    import re

    return isinstance(value, str) and re.search(pattern, value, re.IGNORECASE | re.DOTALL) is not None
