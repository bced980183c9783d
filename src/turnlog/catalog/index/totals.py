"""Running totals: what a session of another agent spent according to itself, and no record of it says.

Where it was imported, the import has booked some of that; the rest is what it counts itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.prices import Paid, Prices
from turnlog.catalog.index.texts import token_of
from turnlog.catalog.values import COUNTS
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine
    from turnlog.formats import CopiedSpending

_LAST = 1 << 40
"""The step of what is known of a session as a whole, and of no record."""
_COPIED = _LAST + 1
"""The step of what a copy knows, and nobody else."""


counts_of: Callable[[Usage], tuple[int, ...]] = attrgetter(*COUNTS)
"""The counts of a usage, as columns have them."""


def spend(db: Engine) -> str:
    """The statement for a row of `spent`. Of several with the same token in a session the first one counts."""
    columns = "session, step, token, at, model, is_reported, is_total, cost, " + ", ".join(COUNTS)
    marks = ", ".join([db.mark] * (8 + len(COUNTS)))
    return f"INSERT INTO {db.table('spent')} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"


def written(totals: dict[str, Usage], at: int) -> str:
    """Totals for a column."""
    rows = [[model, at, *counts_of(usage), usage.cost_micros] for model, usage in totals.items()]
    return msgspec.json.encode(rows).decode() if rows else ""


def book(db: Engine, changed: set[int] | None) -> None:
    """Make the rows of `spent` that stand for totals, of sessions that were read or are copied somewhere."""
    prices: Prices | None = None
    rows = db.rows(
        f"SELECT s.id, s.native, s.totals, c.id FROM {db.table('sessions', 's')} LEFT JOIN {db.table('sessions', 'c')} "
        "ON s.copy_of = c.native AND c.is_ours AND c.origin = s.origin WHERE s.totals <> '' AND NOT s.is_ours"
    )
    for session, native, totals, copy in list(rows):
        if changed is not None and session not in changed and copy not in changed:
            continue
        db.run(db.drop_spent, [(session, _LAST, _LAST)])
        sums = msgspec.json.decode(totals)
        for model, at, *numbers in sums:
            usage = _rest(Usage(*numbers), _booked(db, copy, None if len(sums) == 1 else model))
            if usage is None:
                continue
            prices = prices or Prices(db)
            # Of each session its own: what a fork spent according to itself is not what its parent did.
            about = (session, _LAST, token_of(None, f"total {native} {model}"), at, model)
            db.run(spend(db), [_row(about, usage, prices)])


def book_copies(db: Engine, owed: dict[int, dict[str, CopiedSpending]]) -> set[int]:
    """Make the rows for what copies know of spending, and nobody else. Gives the copies of which that changed."""
    booked: dict[int, set[int]] = {session: set() for session in owed}
    copies = f"SELECT id FROM {db.table('sessions')} WHERE copied <> ''"
    for session, token in db.rows(
        f"SELECT session, token FROM {db.table('spent')} WHERE step = {_COPIED} AND session IN ({copies})"
    ):
        booked.setdefault(session, set()).add(token)
    tokens = {name: token_of(name, "") for spent in owed.values() for name in spent}
    changed = {session for session, spent in owed.items() if booked[session] != {tokens[name] for name in spent}}
    prices = Prices(db) if changed else None
    for session in changed:
        db.run(db.drop_spent, [(session, _COPIED, _COPIED)])
        for name, one in owed[session].items():
            usage = _usage([getattr(one, count) for count in COUNTS], one.cost_micros)
            assert prices is not None
            db.run(spend(db), [_row((session, _COPIED, tokens[name], one.at, one.model), usage, prices)])
    return changed


def _row(about: tuple[int, int, int, int, str], usage: Usage, prices: Prices) -> tuple[Any, ...]:
    """A row of `spent`, of what may be several requests."""
    *_, at, model = about
    cost = prices.cost(Paid(None, model, usage, is_total=True), datetime.fromtimestamp(at / 1000, UTC))
    return (*about, usage.cost_micros is not None, True, cost, *counts_of(usage))


def _booked(db: Engine, copy: int | None, model: str | None) -> Usage:
    """What the import has of it; a single total is of the whole session, under whatever model."""
    if copy is None:
        return Usage()
    sums = ", ".join(f"sum({name})" for name in COUNTS)
    [(*counts, cost)] = db.rows(
        f"SELECT {sums}, sum(CASE WHEN is_reported THEN cost END) FROM {db.table('spent')} "
        f"WHERE session = {db.mark} AND is_total AND (CAST({db.mark} AS TEXT) IS NULL OR model = {db.mark})",
        (copy, model, model),
    )
    return _usage([count or 0 for count in counts], None if cost is None else cost // 1_000_000)


def _rest(total: Usage, booked: Usage) -> Usage | None:
    counts = [max(0, a - b) for a, b in zip(counts_of(total), counts_of(booked), strict=True)]
    cost = None if total.cost_micros is None else max(0, total.cost_micros - (booked.cost_micros or 0))
    return _usage(counts, cost or None) if any(counts) or cost else None


def _usage(counts: list[int], cost: int | None) -> Usage:
    return Usage(**dict(zip(COUNTS, counts, strict=True)), cost_micros=cost)
