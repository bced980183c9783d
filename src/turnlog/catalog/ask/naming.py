"""Resolve the name of a session: one session, or an error that lists the candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.ask.listing import CONVERSATION, IN_TRASH, LEFT_OUT
from turnlog.catalog.index.cards import merged
from turnlog.catalog.index.conditions import Condition, either
from turnlog.errors import Ambiguous, Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.index.index import Index
    from turnlog.catalog.values import Card

_SHOWN = 5


class AmbiguousName(Ambiguous):
    """A name that several sessions have: `cards`."""

    def __init__(self, name: str, cards: list[Card]) -> None:
        some = ", ".join(card.name for card in cards[:_SHOWN]) + (" …" if len(cards) > _SHOWN else "")
        hint = "give more of the id"
        if len({card.name for card in cards}) == 1 and cards[0].path:
            hint = f"their ids are equal: name one by its file, such as {cards[0].path}"
        super().__init__(f"{name!r:.80} fits {len(cards)} sessions: {some}", hint=hint)
        self.cards = cards


def find(indexes: Sequence[Index], name: str, workspace: str, *, deleted: bool = False) -> Card:
    """The session that a name denotes. Raises `Ambiguous`, which lists the sessions, if there are several."""
    if not isinstance(name, str) or not _may_be_name(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"the name of a session is text, not {name!r:.80}")
    where = IN_TRASH if deleted else Condition("not", "sessions.is_deleted")
    columns = ("sessions.native", "sessions.name")
    exact = _cards(indexes, where.and_(either(*(Condition("=", column, name) for column in columns))))
    if exact:
        return _one(name, [card for card in exact if card.is_ours] or exact)
    if name in ("latest", "@", "@-"):
        return _newest(indexes, name, workspace, where)
    high = name + "\U0010ffff"
    begins = where.and_(either(*(Condition(">=", one, name).and_(Condition("<", one, high)) for one in columns)))
    cards = _cards(indexes, begins.and_(Condition("not", "sessions.is_copied"))) or _cards(indexes, begins)
    if not cards:
        raise NotFound(f"no session {name!r:.80}", hint=_hint(indexes))
    return _one(name, cards)


def _may_be_name(text: str) -> bool:
    """Whether an index can be asked for a name: the command line passes bytes that are not UTF-8 as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return text != "" and "\0" not in text


def _cards(indexes: Sequence[Index], sessions: Condition, limit: int | None = None) -> list[Card]:
    return merged([index.cards(sessions, limit=limit) for index in indexes])[:limit]


def _newest(indexes: Sequence[Index], name: str, workspace: str, where: Condition) -> Card:
    """The latest active session, anywhere or here; one that is no conversation only if there is no other."""
    for kind in ("copied", "hidden", "subagent"):
        where = where.and_(LEFT_OUT[kind])
    if name != "latest":
        where = where.and_(Condition("=", "sessions.workspace", workspace))
    skipped = int(name == "@-")
    cards = _cards(indexes, where.and_(CONVERSATION), skipped + 1) or _cards(indexes, where, skipped + 1)
    if len(cards) <= skipped:
        suffix = "" if name == "latest" else f" for {workspace}"
        what = "only one session" if cards else "no session"
        raise NotFound(f"there is {what}{suffix}", hint=_hint(indexes))
    return cards[skipped]


def _one(name: str, cards: list[Card]) -> Card:
    shortest, *others = sorted(cards, key=lambda card: len(card.id))
    if all(len(card.id) > len(shortest.id) and card.id.startswith(shortest.id) for card in others):
        return shortest  # the names of the others extend it, as those of an agent's subagents may
    raise AmbiguousName(name, cards)


def _hint(indexes: Sequence[Index]) -> str:
    count = sum(index.count(Condition("not", "sessions.is_deleted")) for index in indexes)
    return f"`turnlog ls --all` shows the {count:,} there are" if count else "there is none on this machine yet"
