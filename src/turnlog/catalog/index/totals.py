"""Running totals: what a session of another agent spent according to itself, and no record of it says.

Where it was imported, the import has booked some of that; the rest is what it counts itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from turnlog.catalog.index.prices import Paid, Prices
from turnlog.catalog.index.texts import token_of
from turnlog.catalog.values import COUNTS
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    from turnlog.catalog.index.contract import Ledger

_LAST = 1 << 40
"""The step of what is known of a session as a whole, and of no record."""


counts_of: Callable[[Usage], tuple[int, ...]] = attrgetter(*COUNTS)
"""The counts of a usage, as columns have them."""


def written(totals: dict[str, Usage], at: int) -> str:
    """Totals for a column."""
    rows = [[model, at, *counts_of(usage), usage.cost_micros] for model, usage in totals.items()]
    return msgspec.json.encode(rows).decode() if rows else ""


def book(ledger: Ledger, changed: set[int] | None) -> None:
    """Make the rows of `spent` that stand for totals, of sessions that were read or are copied somewhere."""
    prices: Prices | None = None
    for session, totals, copy in ledger.rows(ledger.sql.totals):
        if changed is not None and session not in changed and copy not in changed:
            continue
        ledger.run(ledger.sql.drop_spent, [(session, _LAST, _LAST)])
        rows = msgspec.json.decode(totals)
        for model, at, *numbers in rows:
            usage = _rest(Usage(*numbers), _booked(ledger, copy, None if len(rows) == 1 else model))
            if usage is None:
                continue
            when = datetime.fromtimestamp(at / 1000, UTC)
            prices = prices or Prices(ledger)
            cost = prices.cost(Paid(None, model, usage, is_total=True), when)
            token, is_reported = token_of(None, f"total {model}"), usage.cost_micros is not None
            row = (session, _LAST, token, at, model, is_reported, True, cost, *counts_of(usage))
            ledger.run(ledger.sql.spend, [row])


def _booked(ledger: Ledger, copy: int | None, model: str | None) -> Usage:
    """What the import has of it; a single total is of the whole session, under whatever model."""
    if copy is None:
        return Usage()
    *counts, cost = ledger.rows(ledger.sql.booked, (copy, model, model))[0]
    return _usage([count or 0 for count in counts], None if cost is None else cost // 1_000_000)


def _rest(total: Usage, booked: Usage) -> Usage | None:
    counts = [max(0, a - b) for a, b in zip(counts_of(total), counts_of(booked), strict=True)]
    cost = None if total.cost_micros is None else max(0, total.cost_micros - (booked.cost_micros or 0))
    return _usage(counts, cost or None) if any(counts) or cost else None


def _usage(counts: list[int], cost: int | None) -> Usage:
    return Usage(**dict(zip(COUNTS, counts, strict=True)), cost_micros=cost)
