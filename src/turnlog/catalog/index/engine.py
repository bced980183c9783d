"""What is asked of the database in which an index lies, whichever that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.terms import Term

if TYPE_CHECKING:
    from turnlog.catalog.index.conditions import Clause

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


class TimeSpan(NamedTuple):
    """From a moment on, and before another; milliseconds since 1970, None for no limit."""

    since: int | None = None
    until: int | None = None


class Wanted(NamedTuple):
    """What is looked for: words that an index knows, and conditions."""

    terms: tuple[Term, ...] = ()
    sessions: Condition = Condition()
    entries: Condition = Condition()
    span: TimeSpan = TimeSpan()

    def ids(self, before: int | None = None) -> tuple[int, int]:
        """The entries of that time, from and before."""
        since, until = self.span
        first = -(1 << 62) if since is None else _bounded(since)
        last = (1 << 63) - 1 if until is None else _bounded(until)
        return first, last if before is None else min(last, before)


def _bounded(at: int) -> int:
    return min(max(at, -(1 << 42)), (1 << 43) - 1) << SHIFT


class Before(NamedTuple):
    """What the index knows of a session already."""

    id: int
    native: str
    size: int
    title: str | None
    preview: str
    mark: bytes | None
    inode: int


class Shift(NamedTuple):
    """From this quarter on, the time zone is so many quarters ahead."""

    start: int
    ahead: int


class SpendingQuery(NamedTuple):
    """Of which sessions and models, and when."""

    sessions: Condition
    models: Condition
    span: TimeSpan
    shifts: Callable[[int, int], list[Shift]] | None = None
    """Where days are asked for: what the time zone is like between two quarters."""


class Engine(Protocol):
    """A database in which an index lies: what it says in words of its own, and how it is asked."""

    mark: str
    """Stands for a value."""
    like: str
    regexp: str
    drop_spent: str
    """What a session spent between two steps."""
    drop_quarters: str
    drop_note: str
    sure: frozenset[str]
    """The kinds of terms of which its index tells all; others have to be looked for in the text."""
    patience: int
    """So many characters of text are read for one question; then it is said that there may be more."""

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

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """Entries that may be meant, the newest first: those that have what the index knows."""
        ...
