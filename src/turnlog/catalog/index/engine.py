"""What an index needs of the database that it lies in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from turnlog.catalog.index.conditions import Clause
from turnlog.catalog.index.lookup import EntryMatch, EntryQuery
from turnlog.catalog.index.terms import Term


class Engine(Protocol):
    """A database that holds an index: the SQL that differs between databases, and how to query it."""

    placeholder: str
    """The placeholder of a value."""
    like: str
    """The operator of a pattern that ignores case."""
    at: str
    """The time of a row of `docs`, in milliseconds."""
    regexp: str
    """The operator of a regular expression."""
    drop_spent: str
    """The statement that deletes what a session spent; values: session, first step, last step."""
    drop_quarters: str
    """The statement that deletes the quarters of a session; value: session."""
    drop_note: str
    """The statement that deletes a note; value: key."""
    keeps_details: bool
    """Whether it has tables for outlines and for what tools did."""
    sure: frozenset[str]
    """The kinds of terms that its index finds exactly; for others, texts have to be read."""
    patience: int
    """The maximum number of characters read for one query; beyond that the answer is marked as incomplete."""

    def table(self, name: str, alias: str = "") -> str:
        """A table in SQL, with an alias if one is given."""
        ...

    def total(self, expression: str) -> str:
        """SQL for the sum of an expression over a group: 0 without values, and never more than `LARGEST`."""
        ...

    def among_numbers(self, column: str) -> str:
        """SQL for "the column is in a list of integers"; the list is one value of the statement."""
        ...

    def among_texts(self, column: str) -> str:
        """The same for a list of texts, however long it is."""
        ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Run a query, and return its rows."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each of `rows`."""
        ...

    def having(self, lookup: EntryQuery) -> Clause:
        """The condition for sessions with entries that a lookup finds."""
        ...

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """The texts of these entries."""
        ...

    def frequency(self, term: Term) -> int:
        """The number of entries with a term, as far as the index can tell; counting stops at a limit."""
        ...

    def nearest(self, word: str) -> str:
        """The most similar word that occurs; "" if there is none, or if the index does not list words."""
        ...

    def entries(
        self, lookup: EntryQuery, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """Entries that may match, newest first: the index was checked, the text was not."""
        ...
