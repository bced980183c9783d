"""Sessions whose title or name has the words of a query, as hits."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from turnlog.catalog.answer import Hit
from turnlog.catalog.ask.filters import active, of_entries, title_condition
from turnlog.catalog.ask.hits import resume_command
from turnlog.catalog.index.columns import EPOCH
from turnlog.catalog.index.conditions import Condition, either
from turnlog.catalog.index.keys import SHIFT
from turnlog.catalog.index.lookup import bounded
from turnlog.catalog.index.terms import Needle, fold
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from turnlog.catalog.ask.query import Query
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.lookup import EntryQuery
    from turnlog.catalog.values import Card

TITLE = "title"
"""The role of a hit that is no entry: the title or the name of the session matches."""
_LISTED = Condition("not", "sessions.is_deleted").and_(Condition("not", "sessions.is_copied"))


class TitleHit(NamedTuple):
    """A session whose title or name has the words."""

    session: int
    """The row of the session in its index."""
    hit: Hit


class TitlePage(NamedTuple):
    """Sessions of one index, the newest first."""

    hits: list[TitleHit]
    next: int | None
    """The `before` of the next page; None if there is none."""


def title_hits(index: Index, query: Query, lookup: EntryQuery, limit: int, before: int | None = None) -> TitlePage:
    """A page of about `limit` sessions. Each hit has the time of the newest entry of its session.

    A page is empty only if it is the last one, and ends between two times: the next one continues before a time.
    """
    both = zip(query.sides, (lookup, *lookup.others), strict=True)
    sides = [(side, of_side) for side, of_side in both if side.terms and not of_entries(side).op]
    if not sides:
        return TitlePage([], None)
    matching = (of_side.sessions.and_(title_condition(side)).and_(active(of_side.span)) for side, of_side in sides)
    condition = _LISTED.and_(either(*matching))
    needles = [[Needle(term) for term in side.terms if not term.negated] for side, _ in sides]
    while True:
        cards, next = _cards(index, condition, limit, before)
        hits = _hits(index, cards, needles)
        if hits or next is None:
            return TitlePage(hits, next)
        before = next


def _cards(index: Index, condition: Condition, limit: int, before: int | None) -> tuple[dict[int, Card], int | None]:
    """The newest sessions by row, with all that have the time of the last one; and the `before` of the others."""
    if before is not None:
        condition = condition.and_(Condition("<=", "sessions.updated", bounded((before - 1) >> SHIFT)))
    cards = index.cards_by_row(condition, limit=limit + 1)
    if len(cards) <= limit:
        return cards, None
    *_, last, beyond = cards.items()
    end = _cursor(last[1])
    if _cursor(beyond[1]) < end:
        del cards[beyond[0]]
        return cards, end
    same = index.cards_by_row(condition.and_(Condition("=", "sessions.updated", end >> SHIFT)))
    others = condition.and_(Condition("<", "sessions.updated", end >> SHIFT))
    return cards | same, end if index.count(others) else None


def _hits(index: Index, cards: dict[int, Card], sides: list[list[Needle]]) -> list[TitleHit]:
    """The hits for sessions, without copies that inherited a title. `sides` are the words of each side of an `OR`."""
    if not cards:
        return []
    from turnlog.catalog.ask.snippet import snippet

    hits: list[TitleHit] = []
    needles = [needle for side in sides for needle in side]
    titles = _titles_of_originals(index, cards)
    for row, card in cards.items():
        title = card.title or ""
        is_titled = any(all(needle.is_in(fold(title)) for needle in side) for side in sides)
        if is_titled and titles.get(card.copy_of or "") == title:
            continue
        text, marks = snippet(title if is_titled else " · ".join(filter(None, (card.id, title))), needles)
        at, resume = card.updated_at or EPOCH, resume_command(card, 0)
        hits.append(TitleHit(row, Hit(card, "", 0, TITLE, "", at, text, marks, resume, _cursor(card))))
    return hits


def _cursor(card: Card) -> int:
    at: datetime = card.updated_at or EPOCH
    return ((at - EPOCH) // timedelta(milliseconds=1)) << SHIFT


def _titles_of_originals(index: Index, cards: dict[int, Card]) -> dict[str, str]:
    """The titles of the listed originals of these cards, by the name that copies use for them."""
    wanted = tuple({card.copy_of for card in cards.values() if card.copy_of})
    if not wanted:
        return {}
    named = Condition("in", "sessions.native", wanted).or_(Condition("in", "sessions.name", wanted))
    return {card.id if card.is_ours else card.name: card.title or "" for card in index.cards(_LISTED.and_(named))}
