"""Running totals: what a session of another agent spent according to itself, and no record of it says.

Where it was imported, the import has booked some of that; the rest is what it counts itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.batch import SPENT, token_of
from turnlog.catalog.index.schema import COUNTS
from turnlog.catalog.read.digest import Paid
from turnlog.catalog.read.prices import Prices
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    import sqlite3

_LAST = 1 << 40
"""The step of what is known of a session as a whole, and of no record."""
_BOOKED = ", ".join(f"sum({name})" for name in COUNTS)


def written(totals: dict[str, Usage], at: int) -> str:
    """Totals for a column."""
    rows = [[model, at, *_counts(usage), usage.cost_micros] for model, usage in totals.items()]
    return msgspec.json.encode(rows).decode() if rows else ""


def book(db: sqlite3.Connection, changed: set[int] | None) -> None:
    """Make the rows of `spent` that stand for totals, of sessions that were read or are copied somewhere."""
    sql = (
        "SELECT s.id, s.totals, c.id FROM sessions s "
        "LEFT JOIN sessions c ON s.copy_of = c.native AND c.is_ours AND c.origin = s.origin "
        "WHERE s.totals <> '' AND NOT s.is_ours"
    )
    prices: Prices | None = None
    for session, totals, copy in db.execute(sql).fetchall():
        if changed is not None and session not in changed and copy not in changed:
            continue
        db.execute("DELETE FROM spent WHERE session = ? AND step = ?", (session, _LAST))
        rows = msgspec.json.decode(totals)
        for model, at, *numbers in rows:
            usage = _rest(Usage(*numbers), _booked(db, copy, None if len(rows) == 1 else model))
            if usage is None:
                continue
            when = datetime.fromtimestamp(at / 1000, UTC)
            prices = prices or Prices(db)
            cost = prices.cost(Paid(None, model, usage, is_total=True), when)
            token = token_of(None, f"total {model}")
            db.execute(
                SPENT, (session, _LAST, token, at, model, usage.cost_micros is not None, True, cost, *_counts(usage))
            )


def _booked(db: sqlite3.Connection, copy: int | None, model: str | None) -> Usage:
    """What the import has of it; a single total is of the whole session, under whatever model."""
    if copy is None:
        return Usage()
    where, params = ("", [copy]) if model is None else (" AND model = ?", [copy, model])
    sql = f"SELECT {_BOOKED}, sum(CASE WHEN is_reported THEN cost END) FROM spent WHERE session = ? AND is_total{where}"
    *counts, cost = db.execute(sql, params).fetchone()
    return _usage([count or 0 for count in counts], None if cost is None else cost // 1_000_000)


def _rest(total: Usage, booked: Usage) -> Usage | None:
    counts = [max(0, a - b) for a, b in zip(_counts(total), _counts(booked), strict=True)]
    cost = None if total.cost_micros is None else max(0, total.cost_micros - (booked.cost_micros or 0))
    return _usage(counts, cost or None) if any(counts) or cost else None


def _usage(counts: list[int], cost: int | None) -> Usage:
    return Usage(**dict(zip(COUNTS, counts, strict=True)), cost_micros=cost)


def _counts(usage: Usage) -> tuple[Any, ...]:
    return tuple(getattr(usage, name) for name in COUNTS)
