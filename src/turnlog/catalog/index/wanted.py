"""What is looked for in an index, and what may be it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.terms import Term
from turnlog.catalog.index.texts import SHIFT


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
    others: tuple[Wanted, ...] = ()
    """The other sides of an OR. Engines are queried for each in turn."""

    @property
    def every_term(self) -> tuple[Term, ...]:
        """The words of this and the others."""
        return tuple(term for one in (self, *self.others) for term in one.terms)

    def ids(self, before: int | None = None) -> tuple[int, int]:
        """The entries of that time, from and before."""
        since, until = self.span
        first = -(1 << 62) if since is None else bounded(since) << SHIFT
        last = (1 << 63) - 1 if until is None else bounded(until) << SHIFT
        return first, last if before is None else min(last, before)


def bounded(at: int) -> int:
    """A time for which there can be ids."""
    return min(max(at, -(1 << 42)), (1 << 43) - 1)


class Shift(NamedTuple):
    """From this quarter on, the time zone is ahead by this many quarters."""

    start: int
    ahead: int


class SpendingQuery(NamedTuple):
    """Of which sessions and models, and when."""

    sessions: Condition
    models: Condition
    span: TimeSpan
    shifts: Callable[[int, int], list[Shift]] | None = None
    """Where days are asked for: what the time zone is like between two quarters."""
