"""Which session a word means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.ask.cards import cards_on
from turnlog.errors import Ambiguous, Invalid, NotFound

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from turnlog.catalog.values import Card

_LISTED = "NOT is_deleted AND NOT is_copied AND NOT is_hidden AND parent IS NULL"
_SHOWN = 5


class Fits(Ambiguous):
    """Several sessions answer to that name: `cards`."""

    def __init__(self, name: str, cards: list[Card]) -> None:
        some = ", ".join(card.name for card in cards[:_SHOWN]) + (" …" if len(cards) > _SHOWN else "")
        super().__init__(f"{name!r:.80} fits {len(cards)} sessions: {some}", hint="give more of the id")
        self.cards = cards


def find(dbs: Sequence[sqlite3.Connection], name: str, workspace: str, *, deleted: bool = False) -> Card:
    """The one session that answers to a name; `Ambiguous` names those that do."""
    if not isinstance(name, str) or not name or "\0" in name:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the name of a session is text, not {name!r:.80}")
    alive = "is_deleted" if deleted else "NOT is_deleted"
    exact = cards_on(dbs, f"{alive} AND (native = ? OR name = ?)", (name, name))
    if exact:
        return _one(name, [card for card in exact if card.is_ours] or exact)
    if name in ("latest", "@", "@-"):
        return _newest(dbs, name, workspace)
    low, high = name, name + "\U0010ffff"
    begins = "(native >= ? AND native < ?) OR (name >= ? AND name < ?)"
    found = cards_on(dbs, f"{alive} AND NOT is_copied AND ({begins})", (low, high, low, high))
    if not found:
        found = cards_on(dbs, f"{alive} AND ({begins})", (low, high, low, high))
    if not found:
        raise NotFound(f"no session {name!r:.80}", hint=_hint(dbs))
    return _one(name, found)


def _newest(dbs: Sequence[sqlite3.Connection], name: str, workspace: str) -> Card:
    """The session that was at work last, anywhere or here; one with nothing in it yet only if there is no other."""
    where, params = (_LISTED, ()) if name == "latest" else (f"{_LISTED} AND workspace = ?", (workspace,))
    skipped = int(name == "@-")
    found = cards_on(dbs, f"{where} AND messages > 0", params, limit=skipped + 1)
    if len(found) <= skipped:
        found = cards_on(dbs, where, params, limit=skipped + 1)
    if len(found) <= skipped:
        place = "" if name == "latest" else f" for {workspace}"
        what = "only one session" if found else "no session"
        raise NotFound(f"there is {what}{place}", hint=_hint(dbs))
    return found[skipped]


def _one(name: str, found: list[Card]) -> Card:
    shortest, *others = sorted(found, key=lambda card: len(card.id))
    if all(len(card.id) > len(shortest.id) and card.id.startswith(shortest.id) for card in others):
        return shortest  # the others are called after it, as an agent's subagents may be
    raise Fits(name, found)


def _hint(dbs: Sequence[sqlite3.Connection]) -> str:
    alive = "SELECT count(*) FROM sessions WHERE NOT is_deleted"
    count = sum(row[0] for db in dbs for row in db.execute(alive))
    return f"`turnlog ls --all` shows the {count:,} there are" if count else "there is none on this machine yet"
