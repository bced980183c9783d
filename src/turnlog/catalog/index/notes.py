"""What an index notes about itself, by key: all keys are here, except those of `postgres/changes.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

DIRTY = "unsettled"
"""Set while something is written that is not settled."""
MAKING = "making"
"""Set while there are sessions that had only a glance."""
UNSCRUBBED = "unscrubbed"
"""Set in the transaction that deletes text, dropped after `scrub`: after a crash, the next process scrubs."""
PRICES_OF = "prices are"
"""The version of the prices that were used."""
PRICES = "prices"
"""The cached prices."""
PRICED = "prices "
"""Before a version of the prices: set when unpriced requests were priced again with these."""
MARKS = "marks of others"
"""The marks of other agents' sessions."""
MARKS_END = "end of marks"
"""The end of the log of marks in a database, when it was read."""
ELSEWHERE = "originals in the database"
"""The originals of copies that are in another index: the id of each, and whether it is deleted."""
IMPORTED = "imported as "
"""Before the number of a session: how it and its import in the database were when they were compared."""
RECALLED = "recalled"
"""Set when a new index has what the ledger says of sessions that were gone before it."""
KEPT_LISTED = "kept listed"
"""Set when a new index has the kept sessions whose files were gone before it."""
REACH = "reach"
"""The largest distance of a rowid from the first one of its time, if some are too late."""


def get_note(db: Engine, key: str) -> Any:
    """The value of a note; None if there is none."""
    rows = [*db.rows(f"SELECT value FROM {db.table('meta')} WHERE key = {db.placeholder}", (key,))]
    return rows[0][0] if rows else None


def has_note(db: Engine, key: str) -> bool:
    """Whether there is a note, whatever its value is."""
    return bool([*db.rows(f"SELECT 1 FROM {db.table('meta')} WHERE key = {db.placeholder}", (key,))])


def set_note(db: Engine, key: str, value: object = 1) -> None:
    """Set a note. Inside a transaction."""
    drop_note(db, key)
    db.run(f"INSERT INTO {db.table('meta')} (key, value) VALUES ({db.placeholder}, {db.placeholder})", [(key, value)])


def drop_note(db: Engine, key: str) -> None:
    """Remove a note. Inside a transaction."""
    db.run(db.drop_note, [(key,)])


def set_flag_sql(db: Engine) -> str:
    """The statement that sets a note to 1 unless it is set; value: key."""
    return f"INSERT INTO {db.table('meta')} (key, value) VALUES ({db.placeholder}, 1) ON CONFLICT DO NOTHING"
