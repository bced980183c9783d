"""What to type for a session, as short as it may be: handles of ours, beginnings of other ids."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnlog.catalog import Card, ListingRow

_SHORT = 8


def short_names(cards: Sequence[Card | ListingRow], ids: list[str]) -> list[str]:
    """A name for each, as long as it takes to tell it from all of these ids: also of subagents and other folders."""
    ids = sorted(ids)
    return [_short(card, ids) for card in cards]


def _short(card: Card | ListingRow, ids: list[str]) -> str:
    name, own, end = card.name, card.name.partition(":")[2], _SHORT
    if card.is_ours:
        lead = f"{card.agent}-"
        if not name.startswith(lead):
            return name
        own, end = name, len(lead) + _SHORT  # imported: its id has that agent's in it
    first, after = bisect_left(ids, own), bisect_right(ids, own)
    if after - first > 1:
        return name  # two agents have it
    if not card.is_ours:
        after = bisect_left(ids, own + "\U0010ffff")  # what is called after it is not meant by a beginning
    for other in ids[max(0, first - 1) : first] + ids[after : after + 1]:
        while end < len(own) and own[:end] == other[:end]:
            end += 1
    return name if own.startswith("-") else own[:end]  # no command takes a word for an option
