"""What a session cost: its own log, what it inherited, and its subagents. Reads them whole, and makes nobody wait."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.log.entry import AnyEntry
from turnlog.pricing import Cost, CostReport, cost_of
from turnlog.store import Store
from turnlog.thread.history import History, subagents


def bill(store: Store, history: History) -> CostReport:
    """The cost of a session, by where it was spent."""
    limit = history.inherited_to
    inherited = cost_of(_entries(history, 0, limit + 1)) if limit else Cost()
    theirs = (cost_of(own_entries(child)) for child in subagents(store, history))
    return CostReport(cost_of(own_entries(history)), inherited, sum(theirs, Cost()))


def own_entries(history: History) -> Iterator[AnyEntry]:
    """What a session did itself: nothing that it inherited, and nothing that is there twice."""
    return _entries(history, history.inherited_to, None)


def _entries(history: History, after: int, before: int | None) -> Iterator[AnyEntry]:
    return (entry for entry in history.forward(after, before) if not history.is_repeat(entry))
