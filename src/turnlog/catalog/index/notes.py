"""What an index notes about itself, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

DIRTY = "unsettled"
"""Noted while something was written and never settled."""
MAKING = "making"
"""Noted while sessions are known of which only a glance was taken."""


def noted(db: Engine, key: str) -> Any:
    """What is noted; None if nothing is."""
    rows = [*db.rows(f"SELECT value FROM {db.table('meta')} WHERE key = {db.mark}", (key,))]
    return rows[0][0] if rows else None


def note(db: Engine, key: str, value: object) -> None:
    """Note something. Inside a transaction."""
    db.run(db.drop_note, [(key,)])
    db.run(f"INSERT INTO {db.table('meta')} (key, value) VALUES ({db.mark}, {db.mark})", [(key, value)])


def flag(db: Engine) -> str:
    """The statement that notes that something is so."""
    return f"INSERT INTO {db.table('meta')} (key, value) VALUES ({db.mark}, 1) ON CONFLICT DO NOTHING"
