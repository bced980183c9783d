"""Sessions, the newest first: one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnlog.mcp.caller import LeftOut, left_out
from turnlog.mcp.page import SEARCH_BYTES, fitted, minute, offset_of, result
from turnlog.mcp.quote import QUOTED
from turnlog.reader.naming.shortname import short_names
from turnlog.view.number import count, dollars

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.mcp.library import Library

_LIMIT = 10


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    query, limit, offset = (
        arguments.get("query", ""),
        arguments.get("limit", _LIMIT),
        offset_of(arguments.get("cursor")),
    )
    hidden = left_out(query, library.own(meta))
    cards = listed(library, query, hidden)
    page = cards[offset : offset + limit]
    rows = [_row(library, *pair) for pair in zip(page, short_names(page, library.catalog.ids()), strict=True)]
    notes = [*library.notes(), *(["Your own session is left out."] if hidden.sessions else [])]

    def make(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        left = max(0, len(cards) - offset - len(rows))
        cursor = str(offset + len(rows)) if left and rows else None
        lines = [
            f"{row['handle']} {row['agent']} {row['at']} {count(row['turns'], 'turn')} {row['cost']}: {row['title']}"
            for row in rows
        ]
        foot = [f'{left:,} more: cursor "{cursor}"'] if cursor else []
        head = QUOTED if rows else f"No sessions of {library.scope.words}."
        data: dict[str, Any] = {"sessions": list(rows), "left": left, "cursor": cursor, "note": QUOTED}
        return result("\n".join([head, *lines, *foot, *notes]), {**data, "notes": notes} if notes else data)

    return fitted(rows, make, SEARCH_BYTES)


def listed(library: Library, query: str, hidden: LeftOut) -> list[Card]:
    """The sessions in the scope, without the one that asks."""
    cards = library.catalog.cards(library.scope.narrowed(query, *hidden.filters))
    return [card for card in cards if library.scope.covers(card.workspace) and not hidden.has(card)]


def _row(library: Library, card: Card, handle: str) -> dict[str, Any]:
    micros = card.cost_micros
    return {
        "session": card.id,
        "handle": handle,
        "agent": card.agent or "turnlog",
        "title": library.quotes.title(card.title or card.preview),
        "at": minute(card.updated_at),
        "turns": card.turns,
        "cost": dollars(micros, is_partial=bool(card.unpriced)),
        "state": card.state,
    }
