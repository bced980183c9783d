"""What was spent: by day, by model, by session …

Summed from `quarters`: what each session spent in a quarter of an hour with one model; time zones are whole quarters
apart. Only what a session spent itself is in there, so that nothing counts twice.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.catalog.ask.filters import Clause, TimeSpan, of_model, span_of
from turnlog.catalog.ask.query import Query, parse
from turnlog.catalog.ask.search import sessions_meant
from turnlog.catalog.index.schema import COUNTS
from turnlog.catalog.index.shelf import shelf_of
from turnlog.catalog.index.texts import path_of
from turnlog.catalog.values import Spending, TokenSums
from turnlog.errors import Invalid

if TYPE_CHECKING:
    import sqlite3
    from datetime import tzinfo

GROUPS = ("day", "week", "month", "session", "model", "workspace", "agent")
_TIMES = GROUPS[:3]
UNKNOWN = "unknown"
TOTAL = "total"

_QUARTER_MS = 900_000
_DAY = 96
_UNIX_EPOCH = 719_163  # as a day of `date`
_PICO = 1_000_000
_SUMS = ", ".join(f"sum({name})" for name in ("requests", "cost", "unpriced", *COUNTS))
_COLUMNS = ", ".join(("session", "quarter", "model", "requests", "cost", "unpriced", *COUNTS))


def usage(
    *dbs: sqlite3.Connection,
    query: str = "",
    by: str = "day",
    workspace: str | None = None,
    timezone: tzinfo | None = None,
    now_ms: int,
) -> list[Spending]:
    """What was spent, in groups; the last one is the total. Days come in their order, all else by what it cost."""
    if by not in GROUPS:
        raise Invalid(f"no usage by {by!r:.40}", hint=f"by {', '.join(GROUPS)}")
    asked = parse(query)
    groups: dict[str, Sum] = {}
    total = Sum()
    for number, db in enumerate(dbs):
        found = _rows(db, asked, by, workspace, timezone, now_ms)
        names = _names(db, by, {row[0] for row in found})
        for session, day, model, *numbers in found:
            group = _group(by, day, model, names.get(session, UNKNOWN))
            for one in (groups.setdefault(group, Sum()), total):
                one.add((number, session), model, numbers)
    order = sorted(groups)
    if by not in _TIMES:
        order.sort(key=lambda name: -groups[name].numbers[1])
    return [*(groups[name].as_spending(name) for name in order), total.as_spending(TOTAL)]


def _rows(
    db: sqlite3.Connection, asked: Query, by: str, workspace: str | None, zone: tzinfo | None, now_ms: int
) -> list[tuple[Any, ...]]:
    """Of each session, day and model: requests, millionths of micro-dollars, unpriced requests, and the counts."""
    without = ("model", "since", "until")
    sessions = sessions_meant(shelf_of(db), asked, now_ms=now_ms, zone=zone, without=without)
    if workspace is not None:
        sessions = sessions.and_(Clause("sessions.workspace = ?", (workspace,)))
    where = of_model(asked, "model")
    if sessions.sql:
        inside = f"session IN (SELECT sessions.id FROM sessions WHERE {sessions.sql})"
        where = where.and_(Clause(inside, sessions.values))
    table = _table(span_of(asked, now_ms=now_ms, zone=zone)).sql
    day = "0"
    if by in _TIMES:
        first, last = db.execute(f"SELECT min(quarter), max(quarter) FROM ({table}) AS q").fetchall()[0]
        day = _day_of(first or 0, last or 0, zone)
    sql = (
        f"SELECT session, {day} AS day, model, {_SUMS} FROM ({table}) AS q "
        f"WHERE {where.sql or '1 = 1'} GROUP BY session, day, model"
    )
    return db.execute(sql, where.values).fetchall()


class Sum:
    """A group, while it is summed up."""

    def __init__(self) -> None:
        self.numbers = [0] * (3 + len(COUNTS))
        self._sessions: set[tuple[int, int]] = set()
        self._unpriced: set[str] = set()

    def add(self, session: tuple[int, int], model: str, numbers: list[int]) -> None:
        """One more row."""
        self.numbers = [one + int(other) for one, other in zip(self.numbers, numbers, strict=True)]
        self._sessions.add(session)
        if numbers[2]:
            self._unpriced.add(model or UNKNOWN)

    def as_spending(self, name: str) -> Spending:
        """What it has come to."""
        requests, cost, _, *counts = self.numbers
        tokens = TokenSums._make((*counts, rounded(cost)))
        return Spending(name, tokens, requests, len(self._sessions), tuple(sorted(self._unpriced)))


def rounded(pico: int) -> int:
    """Millionths of micro-dollars as micro-dollars, halves to the even one."""
    whole, rest = divmod(pico, _PICO)
    return whole + (rest * 2 > _PICO or (rest * 2 == _PICO and whole % 2 == 1))


def _group(by: str, day: int, model: str, name: str) -> str:
    if by == "model":
        return model or UNKNOWN
    if by in ("session", "workspace", "agent"):
        return name
    at = date.fromordinal(_UNIX_EPOCH + int(day))
    if by == "day":
        return at.isoformat()
    if by == "month":
        return at.isoformat()[:7]
    year, week, _ = at.isocalendar()
    return f"{year}-W{week:02}"


def _names(db: sqlite3.Connection, by: str, sessions: set[int]) -> dict[int, str]:
    column = {"session": "name", "workspace": "workspace", "agent": "agent"}.get(by)
    if column is None or not sessions:
        return {}
    found = db.execute(f"SELECT id, {column} FROM sessions WHERE {column} IS NOT NULL")
    return {one: path_of(name) for one, name in found if one in sessions}


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


def _table(span: TimeSpan) -> Clause:
    """The rows of that time: whole quarters, and single requests where it begins or ends inside of one."""
    first = None if span.since is None else -(-span.since // _QUARTER_MS)
    last = None if span.until is None else span.until // _QUARTER_MS
    conditions = [f"quarter >= {first}"] * (first is not None) + [f"quarter < {last}"] * (last is not None)
    sql = f"SELECT {_COLUMNS} FROM quarters" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
    edges: list[tuple[int, int]] = []
    if span.since is not None and span.since % _QUARTER_MS:
        edges.append((span.since, min(-(-span.since // _QUARTER_MS) * _QUARTER_MS, _or_later(span.until))))
    if span.until is not None and span.until % _QUARTER_MS:
        start = span.until // _QUARTER_MS * _QUARTER_MS
        if span.since is None or start >= span.since:
            edges.append((start, span.until))
    for start, end in edges:
        sql += (
            f" UNION ALL SELECT session, at / {_QUARTER_MS}, model, 1, coalesce(cost, 0), "
            f"CASE WHEN cost IS NULL THEN 1 ELSE 0 END, {', '.join(COUNTS)} FROM spent WHERE NOT is_inherited "
            f"AND at >= {start} AND at < {end} "
            f"AND session IN (SELECT session FROM quarters WHERE quarter = {start // _QUARTER_MS})"
        )
    return Clause(sql)


def _or_later(until: int | None) -> int:
    return until if until is not None else 1 << 62


class Shift(NamedTuple):
    """From this quarter on, the time zone is so many quarters ahead."""

    start: int
    ahead: int


def _day_of(first: int, last: int, zone: tzinfo | None) -> str:
    """The day in a time zone, as SQL over `quarter`."""
    shifts = [Shift(first, _ahead(first, zone))]
    week = 7 * _DAY
    for end in range(first + week, last + week, week):
        ahead = _ahead(end, zone)
        if ahead != shifts[-1].ahead:
            low, high = end - week, end  # it changes between these
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if _ahead(middle, zone) == ahead else (middle, high)
            shifts.append(Shift(high, ahead))
    *earlier, newest = shifts
    cases = "".join(
        f" WHEN quarter < {after.start} THEN {shift.ahead}" for shift, after in zip(earlier, shifts[1:], strict=True)
    )
    ahead = f"CASE{cases} ELSE {newest.ahead} END" if cases else str(newest.ahead)
    return f"((quarter + {ahead}) / {_DAY})"


def _ahead(quarter: int, zone: tzinfo | None) -> int:
    seconds = quarter * _QUARTER_MS // 1000
    if zone is None:
        return time.localtime(seconds).tm_gmtoff // 900
    offset = datetime.fromtimestamp(seconds, UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds()) // 900
