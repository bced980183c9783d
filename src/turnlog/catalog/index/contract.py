"""What the rest of the catalog asks of an index, whichever engine keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.terms import Term

if TYPE_CHECKING:
    from turnlog.catalog.index.conditions import Clause
    from turnlog.catalog.values import Card, ListingRow

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


class Index(Protocol):
    """Where sessions and what was said in them are looked up. What a `Condition` is given for, it is asked for."""

    sure: frozenset[str]
    """The kinds of terms of which its index tells all; others have to be looked for in the text."""
    patience: int
    """So many characters of text are read for one question; then it is said that there may be more."""

    def cards(self, sessions: Condition = ..., *, limit: int | None = None) -> list[Card]:
        """Sessions, the newest first."""
        ...

    def cards_by_row(self, rows: Iterable[int]) -> dict[int, Card]:
        """Those sessions."""
        ...

    def listing(self, sessions: Condition) -> list[ListingRow]:
        """The same sessions as `cards`, as lines."""
        ...

    def ids(self) -> list[str]:
        """The ids of all sessions."""
        ...

    def count(self, sessions: Condition = ...) -> int:
        """How many there are."""
        ...

    def labels(self, column: str) -> dict[int, Any]:
        """One column of every session that has something there."""
        ...

    def newest(self, sessions: Iterable[int]) -> dict[int, int]:
        """The last step of each."""
        ...

    def in_state(self, states: frozenset[str]) -> list[int]:
        """The sessions that are in one of these states now."""
        ...

    def entries(
        self, wanted: Wanted, *, before: int | None = None, limit: int | None = None, with_text: bool = False
    ) -> Iterator[EntryMatch]:
        """Entries that may be meant, the newest first: those that have what the index knows."""
        ...

    def texts(self, ids: Iterable[int]) -> dict[int, str]:
        """What was said."""
        ...

    def spending(self, asked: SpendingQuery) -> list[tuple[Any, ...]]:
        """Of each session, day and model: requests, millionths of micro-dollars, unpriced requests, and the counts."""
        ...


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


class Words(Protocol):
    """How an engine says what others say otherwise."""

    mark: str
    """Stands for a value."""
    like: str
    regexp: str

    def table(self, name: str) -> str:
        """A table, under that name."""
        ...

    def having(self, wanted: Wanted) -> Clause:
        """Which sessions have such entries."""
        ...


class LedgerStatements(NamedTuple):
    """What is asked and done to bring sessions into step with each other, in the words of an engine."""

    kin: str
    """Sessions that have to do with others."""
    said: str
    """The entries of a session."""
    relate: str
    tokens: str
    """The requests of a session."""
    shared: str
    """The requests that several sessions have, or had."""
    shared_by: str
    """The same of some sessions."""
    holders: str
    """Who has these requests."""
    inherit: str
    sessions: str
    sums: str
    """Of some sessions, by model."""
    put_sums: str
    subagents: str
    put_subagents: str
    totals: str
    booked: str
    spend: str
    """Of several with the same token in a session the first one counts."""
    drop_spent: str
    drop_quarters: str
    add_quarters: str
    unpriced: str
    put_cost: str
    docs: str
    put_session: str
    column: str
    flag: str
    """Note that something is so."""


class Ledger(Protocol):
    """An index that is being written. Inside a transaction."""

    sql: LedgerStatements

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """An answer; a list among the values stands for any of them."""
        ...

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """The same with many values, and no answer."""
        ...

    def get(self, key: str) -> Any:
        """What is noted under a name; None if nothing is."""
        ...

    def note(self, key: str, value: object) -> None:
        """Note something."""
        ...

    def drop(self, key: str) -> None:
        """And forget it."""
        ...
