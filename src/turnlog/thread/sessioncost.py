"""What a session cost: its own log, what it inherited, and its subagents. Reads all of these logs, without locks."""

from __future__ import annotations

from collections.abc import Iterator

from turnlog.log.entry import AnyEntry
from turnlog.pricing import Cost, CostReport, cost_of
from turnlog.store import Store
from turnlog.thread.history import History, subagents


def bill(store: Store, history: History) -> CostReport:
    """The cost of a session, by where it was spent."""
    limit = history.inherited_to
    inherited = cost_of(history.forward(0, limit + 1)) if limit else Cost()
    theirs = (cost_of(own_entries(child)) for child in subagents(store, history))
    return CostReport(cost_of(own_entries(history)), inherited, sum(theirs, Cost()))


def own_entries(history: History) -> Iterator[AnyEntry]:
    """What a session did itself: without inherited entries."""
    return history.forward(history.inherited_to)
