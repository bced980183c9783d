"""Spending, summed up by the database: whole quarters of an hour, and single requests at the edges of a time span."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.conditions import Clause, Condition
from turnlog.catalog.index.where import where
from turnlog.catalog.values import COUNTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.catalog.index.engine import Engine
    from turnlog.catalog.index.lookup import Shift, SpendingQuery, TimeSpan

QUARTER_MS = 900_000
DAY = 96
"""The number of quarters of an hour in a day."""
_COUNTED = ("requests", "cost", "unpriced", *COUNTS)
QUARTERS = ", ".join(("session", "quarter", "model", *_COUNTED))
_ONE = f"1, coalesce(cost, 0), CASE WHEN cost IS NULL THEN 1 ELSE 0 END, {', '.join(COUNTS)}"
"""The columns of `_COUNTED` for a single request."""


def spending(db: Engine, asked: SpendingQuery) -> Iterable[tuple[Any, ...]]:
    """See `Index.spending`."""
    table = _table(db, asked.span)
    day = "0"
    if asked.shifts is not None:
        [(first, last)] = db.rows(f"SELECT min(quarter), max(quarter) FROM ({table}) AS q")
        day = _day_sql(asked.shifts(first or 0, last or 0))
    sql, values = _wanted(db, asked.sessions, asked.models)
    sums = ", ".join(map(db.total, _COUNTED))
    whole = f"SELECT session, {day} AS day, model, {sums} FROM ({table}) AS q WHERE {sql} GROUP BY session, day, model"
    return db.rows(whole, values)


def requests(db: Engine, sessions: Condition, models: Condition) -> Iterable[tuple[Any, ...]]:
    """See `Index.requests`."""
    sql, values = _wanted(db, sessions, models)
    rows = f"SELECT at, session, model, {_ONE} FROM {db.table('spent')} WHERE NOT is_inherited AND {sql} ORDER BY at"
    return db.rows(rows, values)


def _wanted(db: Engine, sessions: Condition, models: Condition) -> Clause:
    sql, values = where(db, models)
    if sessions.op:
        chosen, more = where(db, sessions)
        sql += f" AND session IN (SELECT sessions.id FROM {db.table('sessions')} WHERE {chosen})"
        values += more
    return Clause(sql, values)


def _table(db: Engine, span: TimeSpan) -> str:
    """The rows of a time span."""
    first = None if span.since is None else -(-span.since // QUARTER_MS)
    last = None if span.until is None else span.until // QUARTER_MS
    conditions: list[str] = []
    if first is not None:
        conditions.append(f"quarter >= {first}")
    if last is not None:
        conditions.append(f"quarter < {last}")
    quarters = db.table("quarters")
    sql = f"SELECT {QUARTERS} FROM {quarters}" + (f" WHERE {' AND '.join(conditions)}" if conditions else "")
    edges: list[tuple[int, int]] = []
    if first is not None and span.since is not None and span.since % QUARTER_MS:
        end = first * QUARTER_MS
        edges.append((span.since, end if span.until is None else min(end, span.until)))
    if last is not None and span.until is not None and span.until % QUARTER_MS:
        start = last * QUARTER_MS
        if span.since is None or start >= span.since:
            edges.append((start, span.until))
    for start, end in edges:
        sql += (
            f" UNION ALL SELECT session, at / {QUARTER_MS}, model, {_ONE} FROM {db.table('spent')} "
            f"WHERE NOT is_inherited AND at >= {start} AND at < {end} "
            f"AND session IN (SELECT session FROM {quarters} WHERE quarter = {start // QUARTER_MS})"
        )
    return sql


def _day_sql(shifts: list[Shift]) -> str:
    """SQL for the day of a quarter in a time zone."""
    *earlier, newest = shifts
    cases = "".join(
        f" WHEN quarter < {after.start} THEN {shift.ahead}" for shift, after in zip(earlier, shifts[1:], strict=True)
    )
    ahead = f"CASE{cases} ELSE {newest.ahead} END" if cases else str(newest.ahead)
    return f"((quarter + {ahead}) / {DAY})"
