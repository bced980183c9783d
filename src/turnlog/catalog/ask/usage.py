"""Spending by day, by model, by session …

Summed from what each session spent in a quarter of an hour with one model; time zones are whole quarters apart. Only
what a session spent itself is included, so that nothing counts twice.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from turnlog.catalog.answer import Spending
from turnlog.catalog.ask.filters import of_model, of_spending, span_of
from turnlog.catalog.ask.listing import now_ms as _now_ms
from turnlog.catalog.ask.lookup import session_condition
from turnlog.catalog.ask.owner import UNKNOWN, owners
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.index.columns import path_of
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.lookup import Shift, SpendingQuery
from turnlog.catalog.index.spending import DAY, QUARTER_MS
from turnlog.catalog.values import COUNTS, TokenSums, rounded
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import tzinfo

    from turnlog.session import Home

PERIODS = ("day", "week", "month")
GROUPS = (*PERIODS, "session", "model", "workspace", "agent", "user", "machine")
LABEL = "label:"
"""Before the name of a label: a group for each of its values."""
_COLUMNS = {"session": "name", "workspace": "workspace", "agent": "agent"}
TOTAL = "total"

SessionKey = tuple[int, int]
"""The number of an index, and the row of a session in it."""
_UNIX_EPOCH = 719_163  # as a day of `date`


def usage(
    indexes: Sequence[Index],
    *,
    query: str | Query = "",
    by: str = "day",
    workspace: str | None = None,
    timezone: tzinfo | None = None,
    now_ms: int,
    home: Callable[[], Home] | None = None,
) -> list[Spending]:
    """Spending in groups; the last one is the total. Days are in order, all other groups by their cost.

    `by` may name several kinds, with commas: `month,model`. `home` has the sessions that may have labels.
    """
    groups: dict[tuple[str, ...], Sum] = {}
    total = Sum()
    kinds = tuple(by.split(","))
    for session, model, names, numbers in _grouped(indexes, query, kinds, workspace, timezone, now_ms, home):
        for group in (groups.setdefault(tuple(names), Sum()), total):
            group.add(session, model, numbers)
    return [*(groups[names].as_spending(*names) for names in _ordered(groups, kinds)), total.as_spending(TOTAL)]


def _ordered(groups: dict[tuple[str, ...], Sum], kinds: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Groups and those inside them: times in order, all others by their cost."""
    cost: dict[tuple[str, ...], int] = {}
    for names, group in groups.items():
        for depth in range(1, len(names) + 1):
            cost[names[:depth]] = cost.get(names[:depth], 0) + group.pico

    def key(names: tuple[str, ...]) -> list[tuple[int, str]]:
        return [(0 if by in PERIODS else -cost[names[: depth + 1]], names[depth]) for depth, by in enumerate(kinds)]

    return sorted(groups, key=key)


def usage_by_two(
    indexes: Sequence[Index],
    by: str,
    and_by: str,
    *,
    query: str = "",
    workspace: str | None = None,
    timezone: tzinfo | None = None,
) -> dict[str, list[Spending]]:
    """Spending in each group of one kind, divided into groups of another: for `Catalog.ask`.

    Days are in order; inside, the most expensive group comes first.
    """
    groups: dict[str, dict[str, Sum]] = {}
    for session, model, names, numbers in _grouped(indexes, query, (by, and_by), workspace, timezone, _now_ms()):
        groups.setdefault(names[0], {}).setdefault(names[1], Sum()).add(session, model, numbers)
    order = sorted(groups)
    if by not in PERIODS:
        order.sort(key=lambda name: -sum(group.pico for group in groups[name].values()))
    return {
        name: sorted((group.as_spending(part) for part, group in groups[name].items()), key=_dearest) for name in order
    }


def _dearest(spending: Spending) -> tuple[int, str]:
    return -spending.tokens.cost_micros, spending.group


def _grouped(
    indexes: Sequence[Index],
    query: str | Query,
    kinds: tuple[str, ...],
    workspace: str | None,
    zone: tzinfo | None,
    now_ms: int,
    home: Callable[[], Home] | None = None,
) -> Iterator[tuple[SessionKey, str, list[str], list[int]]]:
    """For each session, day and model: the session, the model, its groups, and the numbers."""
    for by in kinds:
        if by not in GROUPS and not by.startswith(LABEL):
            raise Invalid(f"no usage by {by!r:.40}", hint=f"by {', '.join(GROUPS)} or {LABEL}NAME")
    if len(set(kinds)) < len(kinds):
        raise Invalid(f"usage by the same twice: {','.join(kinds)}", hint="name each once")
    parsed, with_days = of_spending(parse(query)), any(by in PERIODS for by in kinds)
    labelled = {by: labelled_by(home, by.removeprefix(LABEL)) for by in kinds if by.startswith(LABEL)}
    for number, index in enumerate(indexes):
        rows = _rows(index, parsed, workspace, zone, now_ms, with_days=with_days)
        labels = {by: labels_of(index, by, labelled.get(by)) if rows else {} for by in kinds}
        for session, day, model, *numbers in rows:
            names = [_group(by, day, model, path_of(labels[by].get(session, UNKNOWN))) for by in kinds]
            yield (number, session), model, names, numbers


def labelled_by(home: Callable[[], Home] | None, name: str) -> dict[str, str]:
    """The value of a label in each session; a fork or a subagent without it has that of its parent."""
    infos = () if home is None else (*home().sessions(deleted=True), *home().sessions())
    by_id = {info.id: info for info in infos}
    labels: dict[str, str] = {}
    for info in by_id.values():
        session, visited = info, set[str]()
        while name not in session.labels and session.id not in visited:
            visited.add(session.id)
            parent = session.parent or (session.fork.session if session.fork is not None else "")
            session = by_id.get(parent, session)
        if name in session.labels:
            labels[info.id] = session.labels[name]
    return labels


def labels_of(index: Index, by: str, labelled: dict[str, str] | None = None) -> dict[int, Any]:
    """The group of each session, for groups of this kind."""
    if labelled is not None:
        return {row: labelled[id] for row, id in index.column_by_session("native").items() if id in labelled}
    if by in _COLUMNS:
        return index.column_by_session(_COLUMNS[by])
    if by not in ("user", "machine"):
        return {}
    return {id: user if by == "user" else machine for id, user, machine in owners(index)}


def _rows(
    index: Index, query: Query, workspace: str | None, zone: tzinfo | None, now_ms: int, *, with_days: bool
) -> list[tuple[Any, ...]]:
    without = ("model", "since", "until")
    sessions = session_condition(index, query, now_ms=now_ms, zone=zone, without=without)
    if workspace is not None:
        sessions = sessions.and_(Condition("=", "sessions.workspace", workspace))
    span = span_of(query, now_ms=now_ms, zone=zone)
    shifts = partial(_shifts, zone=zone) if with_days else None
    return index.spending(SpendingQuery(sessions, of_model(query, "model"), span, shifts))


class Sum:
    """A group that is being summed up."""

    def __init__(self) -> None:
        self.requests = 0
        self.pico = 0
        """The cost in millionths of micro-dollars."""
        self._tokens = [0] * len(COUNTS)
        self._sessions: set[SessionKey] = set()
        self._unpriced: set[str] = set()

    def add(self, session: SessionKey, model: str, numbers: list[int]) -> None:
        """Add a row: requests, cost, unpriced requests, tokens."""
        requests, pico, unpriced, *tokens = numbers
        self.requests += requests
        self.pico += pico
        self._tokens = [one + other for one, other in zip(self._tokens, tokens, strict=True)]
        self._sessions.add(session)
        if unpriced:
            self._unpriced.add(model or UNKNOWN)

    def as_spending(self, *names: str) -> Spending:
        """The sum as `Spending`."""
        tokens = TokenSums._make((*self._tokens, rounded(self.pico)))
        unpriced = tuple(sorted(self._unpriced))
        return Spending(", ".join(names), tokens, self.requests, len(self._sessions), unpriced, names)


def _group(by: str, day: int, model: str, name: str) -> str:
    if by == "model":
        return model or UNKNOWN
    if by not in PERIODS:
        return name
    at = date.fromordinal(_UNIX_EPOCH + int(day))
    if by == "day":
        return at.isoformat()
    if by == "month":
        return at.isoformat()[:7]
    year, week, _ = at.isocalendar()
    return f"{year}-W{week:02}"


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


def _shifts(first: int, last: int, zone: tzinfo | None) -> list[Shift]:
    """The offsets of a time zone between two quarters of an hour."""
    shifts = [Shift(first, _ahead(first, zone))]
    week = 7 * DAY
    for end in range(first + week, last + week, week):
        ahead = _ahead(end, zone)
        if ahead != shifts[-1].ahead:
            low, high = end - week, end  # the offset changes between these
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if _ahead(middle, zone) == ahead else (middle, high)
            shifts.append(Shift(high, ahead))
    return shifts


def _ahead(quarter: int, zone: tzinfo | None) -> int:
    seconds = quarter * QUARTER_MS // 1000
    if zone is None:
        return time.localtime(seconds).tm_gmtoff // 900
    offset = datetime.fromtimestamp(seconds, UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds()) // 900
