"""Lookups in an index, and the entries that they return."""

from __future__ import annotations

from collections.abc import Callable

from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.keys import SHIFT
from turnlog.catalog.index.terms import Term
from turnlog.log.startup import NamedTuple


class EntryMatch(NamedTuple):
    """An entry that may match."""

    id: int
    session: int
    step: int
    entry: str
    role: str
    tools: str
    text: str | None
    """The text, if it was requested."""


class TimeSpan(NamedTuple):
    """A span of time: from `since` on, and before `until`; milliseconds since 1970, None for no limit."""

    since: int | None = None
    until: int | None = None


class EntryQuery(NamedTuple):
    """A lookup of entries in an index: terms and conditions."""

    terms: tuple[Term, ...] = ()
    sessions: Condition = Condition()
    entries: Condition = Condition()
    span: TimeSpan = TimeSpan()
    others: tuple[EntryQuery, ...] = ()
    """The other sides of an OR. Engines are queried for each in turn."""

    @property
    def every_term(self) -> tuple[Term, ...]:
        """The terms of this lookup and the others."""
        return tuple(term for one in (self, *self.others) for term in one.terms)

    def ids(self, before: int | None = None) -> tuple[int, int]:
        """The range of ids for the time span: first, and first after it."""
        since, until = self.span
        first = -(1 << 62) if since is None else bounded(since) << SHIFT
        last = (1 << 63) - 1 if until is None else bounded(until) << SHIFT
        return first, last if before is None else min(last, before)


def bounded(at: int) -> int:
    """A time within the range of ids."""
    return min(max(at, -(1 << 42)), (1 << 43) - 1)


class Shift(NamedTuple):
    """From a quarter of an hour on, the offset of the time zone in quarters."""

    start: int
    ahead: int


class SpendingQuery(NamedTuple):
    """A query for spending: which sessions and models, and when."""

    sessions: Condition
    models: Condition
    span: TimeSpan
    shifts: Callable[[int, int], list[Shift]] | None = None
    """Returns the offsets of the time zone between two quarters; None if days are not needed."""
