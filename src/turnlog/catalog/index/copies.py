"""Sessions that were written from others: what they repeat, and what they count once the originals are gone.

As long as the original is here, the original is found and shown, and the copy only for what was added to
it. Spending that a copy records counts if no session is left that spent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from turnlog.catalog.index.notes import ELSEWHERE, get_note
from turnlog.interop.copied import Copied, CopiedSpending, CopyOf
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

_decode = msgspec.json.Decoder(Copied).decode


class Repeated(NamedTuple):
    """What a copy repeats, as of now."""

    copy_of: str
    """The name of the original; its id if the original is gone."""
    repeats: int
    """The last step copied from the original; -1 if the original is gone."""
    is_copied: bool
    """Whether the original is here and nothing was added to the copy."""
    owed: dict[str, CopiedSpending]
    """The spending that no original is left to count, by a key that all copies share."""


class _Original(NamedTuple):
    name: str
    is_deleted: bool


def repeated_by_copies(db: Engine) -> dict[int, Repeated]:
    """The copies in the index, by row."""
    sessions = db.table("sessions")
    rows = list(db.rows(f"SELECT id, copied, carried FROM {sessions} WHERE copied <> ''"))
    if not rows:
        return {}
    copies = {id: _decode(copied) for id, copied, _ in rows}
    elsewhere = dict(msgspec.json.decode(encoded)) if (encoded := get_note(db, ELSEWHERE)) else {}
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
        original = originals.get(of[0])
        is_repeat = original is not None and not original.is_deleted
        owed = {
            f"copied {of[one.of].session} {one.at} {one.model}": one
            for one in spent
            if one.of < len(of) and not any(each in originals for each in of[: one.of + 1])
        }
        name = original.name if original is not None else of[0].session
        repeated[id] = Repeated(name, carried if is_repeat else -1, is_repeat and id not in longer, owed)
    return repeated


def written_from(db: Engine) -> dict[int, set[str]]:
    """The copies, each with our ids of its originals."""
    rows = db.rows(f"SELECT id, copied FROM {db.table('sessions')} WHERE copied <> ''")
    return {id: {one.session for one in _decode(copied).of} for id, copied in rows}


def _originals(db: Engine, wanted: set[CopyOf], elsewhere: dict[str, bool]) -> dict[CopyOf, _Original]:
    """The originals that are here, ours or other agents'; one that is not deleted takes precedence."""
    ours = _by_column(db, "is_ours AND native", {one.session for one in wanted})
    origins = _by_column(db, "origin", {f"{one.agent}\n{one.identity}" for one in wanted if one.agent})
    originals: dict[CopyOf, _Original] = {}
    for one in wanted:
        candidates = [*ours.get(one.session, ()), *origins.get(f"{one.agent}\n{one.identity}", ())]
        if one.session in elsewhere:
            candidates.append(_Original(one.session, elsewhere[one.session]))
        if candidates:
            originals[one] = min(candidates, key=lambda original: original.is_deleted)
    return originals


def _by_column(db: Engine, column: str, values: set[str]) -> dict[str, list[_Original]]:
    by_key: dict[str, list[_Original]] = {}
    rows = db.rows(
        f"SELECT native, origin, is_ours, name, is_deleted FROM {db.table('sessions')} "
        f"WHERE {db.among_texts(column)} ORDER BY is_ours DESC, id",
        (sorted(values),),
    )
    for native, origin, is_ours, name, is_deleted in rows:
        key = origin if column == "origin" else native
        by_key.setdefault(key, []).append(_Original(native if is_ours else name, bool(is_deleted)))
    return by_key
