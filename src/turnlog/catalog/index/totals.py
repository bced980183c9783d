"""Running totals: what another agent's session reports to have spent in total, but in no record.

If the session was imported, the import has booked a part of that; the session counts the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import msgspec

from turnlog.catalog.index.batch import BEYOND
from turnlog.catalog.index.columns import LARGEST, MOST
from turnlog.catalog.index.keys import token_of
from turnlog.catalog.index.origin import origins_of
from turnlog.catalog.index.prices import Paid, Prices
from turnlog.catalog.values import COUNTS
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine
    from turnlog.catalog.index.rows import Counts, SpentRow
    from turnlog.interop.copied import CopiedSpending

_COPIED = BEYOND + 1
"""The step of spending that only a copy records."""


_counts: Callable[[Usage], Counts] = attrgetter(*COUNTS)


def counts_of(usage: Usage) -> Counts:
    """The counts of a usage, in the order of columns, within their limits."""
    counts = _counts(usage)
    return counts if max(counts) <= MOST else cast("Counts", tuple(min(count, MOST) for count in counts))


def token_totals(db: Engine) -> str:
    """The sums of all counts, in the order of columns."""
    return ", ".join(map(db.total, COUNTS))


def insert_spent_sql(db: Engine) -> str:
    """The statement that inserts a row of `spent`. Of several with the same token in a session the first one counts."""
    columns = "session, step, token, at, model, is_reported, is_total, cost, " + ", ".join(COUNTS)
    placeholders = ", ".join([db.placeholder] * (8 + len(COUNTS)))
    return f"INSERT INTO {db.table('spent')} ({columns}) VALUES ({placeholders}) ON CONFLICT DO NOTHING"


def encode_totals(totals: dict[str, Usage], at: int) -> str:
    """Encode totals for a column."""
    rows = [
        [model, at, *counts_of(usage), usage.cost_micros and min(usage.cost_micros, LARGEST)]
        for model, usage in totals.items()
    ]
    return msgspec.json.encode(rows).decode() if rows else ""


def book(db: Engine, changed: set[int] | None) -> None:
    """Make the rows of `spent` for totals of the sessions that were read, or whose import was."""
    prices: Prices | None = None
    rows = db.rows(
        "SELECT s.id, s.native, s.totals, s.origin, c.id, coalesce(c.origin, '') "
        f"FROM {db.table('sessions', 's')} LEFT JOIN {db.table('sessions', 'c')} "
        "ON s.copy_of = c.native AND c.is_ours WHERE s.totals <> '' AND NOT s.is_ours"
    )
    for session, native, totals, origin, other, origins in list(rows):
        copy = other if origin in origins_of(origins) else None
        if changed is not None and session not in changed and copy not in changed:
            continue
        db.run(db.drop_spent, [(session, BEYOND, BEYOND)])
        sums = msgspec.json.decode(totals)
        for model, at, *numbers in sums:
            usage = _not_booked(Usage(*numbers), _booked(db, copy, None if len(sums) == 1 else model))
            if usage is None:
                continue
            prices = prices or Prices(db)
            # Each session has its own: the total of a fork is not that of its parent.
            about = (session, BEYOND, token_of(None, f"total {native} {model}"), at, model)
            db.run(insert_spent_sql(db), [_row(about, usage, prices)])


def book_copies(db: Engine, owed: dict[int, dict[str, CopiedSpending]]) -> set[int]:
    """Make the rows for spending that only copies record. Returns the copies whose rows changed."""
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
            db.run(insert_spent_sql(db), [_row((session, _COPIED, tokens[name], one.at, one.model), usage, prices)])
    return changed


def _row(about: tuple[int, int, int, int, str], usage: Usage, prices: Prices) -> SpentRow:
    """A row of `spent` for what may be several requests."""
    *_, at, model = about
    cost = prices.cost(Paid(None, model, usage, is_of_several=True), datetime.fromtimestamp(at / 1000, UTC))
    return (*about, usage.cost_micros is not None, True, cost, *counts_of(usage))


def _booked(db: Engine, copy: int | None, model: str | None) -> Usage:
    """What the import has booked, of one model or, for a single total, of all models."""
    if copy is None:
        return Usage()
    [(*counts, cost)] = db.rows(
        f"SELECT {token_totals(db)}, {db.total('CASE WHEN is_reported THEN cost END')} FROM {db.table('spent')} "
        f"WHERE session = {db.placeholder} AND is_total "
        f"AND (CAST({db.placeholder} AS TEXT) IS NULL OR model = {db.placeholder})",
        (copy, model, model),
    )
    return _usage(counts, cost // 1_000_000)


def _not_booked(total: Usage, booked: Usage) -> Usage | None:
    """What of a total is left beside what the import has booked; None if nothing is."""
    counts = [max(0, a - b) for a, b in zip(counts_of(total), counts_of(booked), strict=True)]
    cost = None if total.cost_micros is None else max(0, total.cost_micros - (booked.cost_micros or 0))
    return _usage(counts, cost or None) if any(counts) or cost else None


def _usage(counts: list[int], cost: int | None) -> Usage:
    return Usage(**dict(zip(COUNTS, counts, strict=True)), cost_micros=cost)
