"""What each session spent in a quarter of an hour with one model: a few rows in the place of many requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.index.schema import COUNTS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

_QUARTER_MS = 900_000
_COLUMNS = ", ".join(("session", "quarter", "model", "requests", "cost", "unpriced", *COUNTS))


def roll_up(db: sqlite3.Connection, sessions: Iterable[int]) -> None:
    """Sum these sessions up again, after what they spent has changed."""
    ones = [(one,) for one in sessions]
    db.executemany("DELETE FROM quarters WHERE session = ?", ones)
    db.executemany(
        f"INSERT INTO quarters ({_COLUMNS}) SELECT session, at / {_QUARTER_MS}, model, count(*), "
        f"coalesce(sum(cost), 0), count(*) - count(cost), {', '.join(f'sum({name})' for name in COUNTS)} "
        f"FROM spent WHERE session = ? AND NOT is_inherited GROUP BY 1, 2, 3",
        ones,
    )
