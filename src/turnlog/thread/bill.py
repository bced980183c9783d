"""What a session cost: its own log, what it inherited, and its subagents. Reads them whole, and makes nobody wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from turnlog.errors import NotFound
from turnlog.log.entry import AnyEntry
from turnlog.pricing import Cost, CostReport, cost_of
from turnlog.store import Store
from turnlog.thread.history import History


def bill(store: Store, history: History) -> CostReport:
    """The cost of a session, by where it was spent."""
    limit = history.inherited_to
    inherited = cost_of(_entries(history, 0, limit + 1)) if limit else Cost()
    subagents = _subagents(store, list(history.state.children), {history.log.id})
    return CostReport(cost_of(_entries(history, limit, None)), inherited, subagents)


def _entries(history: History, after: int, before: int | None) -> Iterator[AnyEntry]:
    return (entry for entry in history.forward(after, before) if not history.is_repeat(entry))


def _subagents(store: Store, ids: Iterable[str], seen: set[str]) -> Cost:
    total = Cost()
    for session_id in ids:
        if session_id in seen:
            continue
        seen.add(session_id)
        try:
            log = store.base(session_id)
        except NotFound:
            continue
        history = History(store, log)
        history.load()
        total = total + cost_of(_entries(history, history.inherited_to, None))
        total = total + _subagents(store, history.state.children, seen)
        log.close()
        history.close()
    return total
