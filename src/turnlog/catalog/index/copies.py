"""Sessions that were written from others: what they repeat, and what they stand for once those are gone.

While the session is here that a copy was written from, that one is found and shown, and the copy for what was added to
it. What a copy knows of spending counts where none is left of those that spent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnlog.catalog.index.notes import noted
from turnlog.formats import Copied, CopiedSpending, CopyOf

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

_AT_ONCE = 500
ELSEWHERE = "originals in the database"
"""What is noted of sessions that copies here were written from, and that are in another index: id, and if deleted."""
_decode = msgspec.json.Decoder(Copied).decode


class Repeated(NamedTuple):
    """What a copy is, as of now."""

    copy_of: str
    """The name of the session it was written from; its id here if that is gone."""
    repeats: int
    """The last step copied from the original; -1 if the original is gone."""
    is_copied: bool
    """Whether nothing was added to it."""
    owed: dict[str, CopiedSpending]
    """What none of those is left to count, by a name that all copies give it."""


class _Original(NamedTuple):
    name: str
    is_deleted: bool


def look(db: Engine) -> dict[int, Repeated]:
    """Every copy there is."""
    sessions = db.table("sessions")
    rows = list(db.rows(f"SELECT id, copied, carried FROM {sessions} WHERE copied <> ''"))
    if not rows:
        return {}
    copies = {id: _decode(copied) for id, copied, _ in rows}
    elsewhere = dict(msgspec.json.decode(encoded)) if (encoded := noted(db, ELSEWHERE)) else {}
    originals = _originals(db, {one for copied in copies.values() for one in copied.of}, elsewhere)
    docs = db.table("docs")
    longer = {
        id
        for (id,) in db.rows(
            f"SELECT sessions.id FROM {sessions} WHERE copied <> '' AND EXISTS "
            f"(SELECT 1 FROM {docs} WHERE docs.session = sessions.id AND docs.step > sessions.carried)"
        )
    }
    repeated: dict[int, Repeated] = {}
    for id, _, carried in rows:
        of, spent = copies[id].of, copies[id].spent
        there = originals.get(of[0])
        is_repeat = there is not None and not there.is_deleted
        owed = {
            f"copied {of[one.of].session} {one.at} {one.model}": one
            for one in spent
            if one.of < len(of) and not any(original in originals for original in of[: one.of + 1])
        }
        name = there.name if there is not None else of[0].session
        repeated[id] = Repeated(name, carried if is_repeat else -1, is_repeat and id not in longer, owed)
    return repeated


def written_from(db: Engine) -> dict[int, set[str]]:
    """The copies, and our ids of those they were written from."""
    rows = db.rows(f"SELECT id, copied FROM {db.table('sessions')} WHERE copied <> ''")
    return {id: {one.session for one in _decode(copied).of} for id, copied in rows}


def _originals(db: Engine, wanted: set[CopyOf], elsewhere: dict[str, bool]) -> dict[CopyOf, _Original]:
    """Those that are here, ours or as their agents have them; one that is not deleted before one that is."""
    ours = _found(db, "is_ours AND native", {one.session for one in wanted})
    origins = _found(db, "origin", {f"{one.agent}\n{one.identity}" for one in wanted if one.agent})
    originals: dict[CopyOf, _Original] = {}
    for one in wanted:
        candidates = [*ours.get(one.session, ()), *origins.get(f"{one.agent}\n{one.identity}", ())]
        if one.session in elsewhere:
            candidates.append(_Original(one.session, elsewhere[one.session]))
        if candidates:
            originals[one] = min(candidates, key=lambda original: original.is_deleted)
    return originals


def _found(db: Engine, column: str, values: set[str]) -> dict[str, list[_Original]]:
    by_key: dict[str, list[_Original]] = {}
    listed = sorted(values)
    for begin in range(0, len(listed), _AT_ONCE):
        some: list[Any] = listed[begin : begin + _AT_ONCE]
        marks = ", ".join([db.mark] * len(some))
        for native, origin, is_ours, name, is_deleted in db.rows(
            f"SELECT native, origin, is_ours, name, is_deleted FROM {db.table('sessions')} "
            f"WHERE {column} IN ({marks}) ORDER BY is_ours DESC, id",
            some,
        ):
            key = origin if column == "origin" else native
            by_key.setdefault(key, []).append(_Original(native if is_ours else name, bool(is_deleted)))
    return by_key
