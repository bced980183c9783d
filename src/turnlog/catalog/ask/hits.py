"""Matches as hits: each with its session, a snippet, and the command that continues from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from turnlog.catalog.answer import Hit
from turnlog.catalog.index.columns import EPOCH
from turnlog.catalog.index.keys import SHIFT
from turnlog.catalog.index.terms import Needle

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index
    from turnlog.catalog.index.lookup import EntryMatch, EntryQuery
    from turnlog.catalog.values import Card


def hits_of(
    index: Index, page: list[EntryMatch], lookup: EntryQuery, clean: Callable[[str], str] = str
) -> Iterator[Hit]:
    """The hits for entries; `clean` is applied to each text before the snippet is cut out of it."""
    if not page:
        return
    from turnlog.catalog.ask.snippet import snippet

    needles = [Needle(term) for term in lookup.every_term if not term.negated]
    sessions = {match.session for match in page}
    cards, newest = index.cards_of(sessions), index.newest(sessions)
    texts = index.engine.texts(match.id for match in page if match.text is None)
    for match in page:
        card = cards.get(match.session)
        if card is None or match.session not in newest:
            continue  # deleted since the query began
        whole = clean(match.text if match.text is not None else texts.get(match.id, ""))
        text, marks = snippet(whole, needles)
        yield Hit(
            card=card,
            entry=match.entry,
            seq=match.step if card.is_ours else 0,
            role=match.role,
            tool=", ".join(filter(None, match.tools.split("\n"))),
            at=EPOCH + timedelta(milliseconds=match.id >> SHIFT),
            snippet=text,
            marks=marks,
            resume=resume_command(card, match.step if card.is_ours and match.step < newest[match.session] else 0),
            cursor=match.id,
        )


def resume_command(card: Card, seq: int) -> tuple[str, ...]:
    """The command that continues from an entry: an older entry of ours needs a fork. For a safety net, what it did."""
    if not card.is_conversation:
        return ("turnlog", "diff", "--session", card.name)
    return ("turnlog", "fork", card.name, "--at", str(seq)) if seq else ("turnlog", "resume", card.name)
