"""Queries in PostgreSQL.

Its index finds words and beginnings of words; for phrases and code, texts are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import LARGEST
from turnlog.catalog.index.conditions import Clause, Condition
from turnlog.catalog.index.keys import SHIFT
from turnlog.catalog.index.lookup import EntryMatch, EntryQuery
from turnlog.catalog.index.postgres.texts import unpack
from turnlog.catalog.index.terms import LONGEST_WORD, Term, phrases_of, words_of
from turnlog.catalog.index.where import where
from turnlog.catalog.waiter import still_wanted

if TYPE_CHECKING:
    from turnlog.store.capability import TableConnection

_SESSIONS = "turnlog.own_sessions as sessions"
_CHUNK = 1000
"""How many entries are read in one query."""
_MANY = 10_000
"""More sessions than this are not listed in a query."""
_NEVER = "'-'"
"""A `tsquery` that matches nothing."""
_SHOWN = tuple(Condition("not", name) for name in ("sessions.is_deleted", "sessions.is_copied", "docs.is_repeat"))


class PostgresEngine:
    """See `Engine`."""

    sure: frozenset[str] = frozenset(("word", "prefix"))
    patience = 64 << 20
    keeps_details = False
    placeholder, like, regexp, at = "%s", "ILIKE", "~*", f"docs.id >> {SHIFT}"

    # Rows are deleted by functions: a role that may delete from a table may also lock it against everybody.
    drop_spent = "select turnlog.own_drop_spent(%s, %s, %s)"
    drop_quarters = "select turnlog.own_drop_quarters(%s)"
    drop_note = "select turnlog.own_drop_meta(array[%s])"

    def __init__(self, connection: TableConnection) -> None:
        self.rows, self.run = connection.rows, connection.run

    def table(self, name: str, alias: str = "") -> str:
        """See `Engine.table`. It is a view on the rows of one tenant."""
        return f"turnlog.own_{name} as {alias or name}"

    def total(self, expression: str) -> str:
        """See `Engine.total`."""
        return f"least(coalesce(sum({expression}), 0), {LARGEST})::bigint"

    def among_numbers(self, column: str) -> str:
        """See `Engine.among_numbers`."""
        return f"{column} = any(%s)"

    def among_texts(self, column: str) -> str:
        """See `Engine.among_texts`."""
        return f"{column} = any(%s)"

    def entries(
        self, lookup: EntryQuery, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """See `Engine.entries`."""
        first, last = lookup.ids(before)
        within = self._within(lookup)
        words = _words(lookup)
        left = limit
        chunk = _CHUNK // 16
        while left is None or left > 0:
            still_wanted()
            chunk = min(2 * chunk, _CHUNK)  # most matches are among the newest entries
            ids = self._ids(lookup, words, first, last, within, chunk)
            for match in self._matches_of(ids, lookup, with_text):
                yield match
                left = None if left is None else left - 1
                if left == 0:
                    return
            if len(ids) < chunk:
                return
            last = ids[-1]

    def _within(self, lookup: EntryQuery) -> list[int] | None:
        """The sessions that may match; None if naming them does not help."""
        if not lookup.sessions.op:
            return None
        sql, values = where(self, Condition("not", "sessions.is_deleted"), lookup.sessions)
        rows = self.rows(f"select sessions.id from {_SESSIONS} where {sql} limit {_MANY}", values)
        return [row[0] for row in rows] if len(rows) < _MANY else None

    def _ids(
        self, lookup: EntryQuery, words: str, first: int, last: int, within: list[int] | None, chunk: int
    ) -> list[int]:
        if within == []:
            return []
        if words:
            sql = "select turnlog.own_found(%s::tsquery, %s, %s, %s::bigint[], %s)"
            return [row[0] for row in self.rows(sql, (words, first, last, within, chunk))]
        sql, values = where(self, *_SHOWN, lookup.entries, lookup.sessions)
        rows = self.rows(
            f"select docs.id from turnlog.own_docs as docs join {_SESSIONS} on sessions.id = docs.session "
            f"where docs.id >= %s and docs.id < %s and {sql} order by docs.id desc limit {chunk}",
            (first, last, *values),
        )
        return [row[0] for row in rows]

    def _matches_of(self, ids: list[int], lookup: EntryQuery, with_text: bool) -> Iterator[EntryMatch]:
        if not ids:
            return
        sql, values = where(self, *_SHOWN, lookup.entries, lookup.sessions)
        join = "join turnlog.own_texts as texts on texts.id = docs.id " if with_text else ""
        rows = self.rows(
            "select docs.id, docs.session, docs.step, docs.entry, docs.role, docs.tool, "
            f"{'texts.data' if with_text else 'null'} from turnlog.own_docs as docs "
            f"join {_SESSIONS} on sessions.id = docs.session {join}"
            f"where docs.id = any(%s) and {sql} order by docs.id desc",
            (ids, *values),
        )
        for row in rows:
            yield EntryMatch(*row) if row[-1] is None else EntryMatch(*row[:-1], text=unpack(row[-1]))

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """See `Engine.texts`."""
        rows = self.rows("select id, data from turnlog.own_texts where id = any(%s)", (list(ids),))
        return {id: unpack(data) for id, data in rows}

    def frequency(self, term: Term) -> int:
        """See `Engine.frequency`."""
        return sum(1 for _ in self.entries(EntryQuery((term,)), limit=_CHUNK))

    def nearest(self, word: str) -> str:
        """See `Engine.nearest`."""
        return ""  # the list of words would show words of other tenants

    def having(self, lookup: EntryQuery) -> Clause:
        """See `Engine.having`."""
        span = lookup.ids()
        words = _words(lookup)
        if words and not lookup.entries.op:
            return Clause("sessions.id in (select turnlog.own_having(%s::tsquery, %s, %s))", (words, *span))
        sql, values = where(self, lookup.entries)
        times = "docs.id >= %s and docs.id < %s"
        if words:
            times, span = "docs.id in (select turnlog.own_found(%s::tsquery, %s, %s, null, 2147483647))", (words, *span)
        inside = f"select docs.session from turnlog.own_docs as docs where {times} and {sql}"
        return Clause(f"sessions.id in ({inside})", (*span, *values))


def _words(lookup: EntryQuery) -> str:
    """The terms as a `tsquery`, as far as words can express them. Only letters and digits, in quotes."""
    parts: list[str] = []
    for term in lookup.terms:
        if term.negated and term.kind not in PostgresEngine.sure:
            continue
        for words, goes_on in phrases_of(term):
            terms = words_of(" ".join(words))
            if not terms and not term.negated:
                parts.append(_NEVER)
            for number, word in enumerate(terms):
                is_open = (goes_on and number == len(terms) - 1) or len(word) > LONGEST_WORD
                parts.append(f"{'!' if term.negated else ''}'{word[:LONGEST_WORD]}'{':*' if is_open else ''}")
    return " & ".join(parts)
