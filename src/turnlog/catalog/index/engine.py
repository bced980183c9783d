"""What is asked of the database in which an index lies, whichever that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from turnlog.catalog.index.conditions import Clause
from turnlog.catalog.index.terms import Term
from turnlog.catalog.index.wanted import EntryMatch, Wanted


class Engine(Protocol):
    """A database in which an index lies: what it says in words of its own, and how it is asked."""

    mark: str
    """Stands for a value."""
    like: str
    at: str
    """The time of a row of `docs`."""
    regexp: str
    drop_spent: str
    """What a session spent between two steps."""
    drop_quarters: str
    drop_note: str
    keeps_details: bool
    """Whether it has tables for outlines and for what tools did."""
    sure: frozenset[str]
    """The kinds of terms of which its index tells all; others have to be looked for in the text."""
    patience: int
    """The maximum number of characters read for one query; beyond that the answer is marked as incomplete."""

    def table(self, name: str, alias: str = "") -> str:
        """A table, under that or another name."""
        ...

    def among(self, column: str) -> str:
        """Whether a column is one of those in a list, which is one value."""
        ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """The answer to a question."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """The same with many values, and no answer."""
        ...

    def having(self, wanted: Wanted) -> Clause:
        """Which sessions have such entries."""
        ...

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """What was said in these entries."""
        ...

    def frequency(self, term: Term) -> int:
        """In how many entries a term is, as far as its index tells; many are counted no further."""
        ...

    def nearest(self, word: str) -> str:
        """The word that is somewhere and most like this one; "" if none is, or the index does not tell words."""
        ...

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """Entries that may be meant, the newest first: those that have what the index knows."""
        ...
