"""Hits as the list of a document, and its cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.cli.fields.session import json_card
from turnlog.cli.frame.document.itemlist import DocumentItems, bad_cursor, cursor_number

if TYPE_CHECKING:
    from turnlog.catalog.answer import Hit


class HitCursor(NamedTuple):
    """Where a list of hits continues: after a hit, or within a page of sessions."""

    before: int | None = None
    """Only hits older than this one."""
    page: int | None = None
    skipped: int = 0
    """How many hits of the page were shown."""


def parse_cursor(cursor: str, *, is_paged: bool) -> HitCursor:
    """Return what `--cursor` means; `is_paged` where sessions are listed in pages."""
    numbers = [cursor_number(part, cursor) for part in cursor.split(".")]
    if len(numbers) != (2 if is_paged else 1):
        raise bad_cursor(cursor)
    return HitCursor(page=numbers[0], skipped=numbers[1]) if is_paged else HitCursor(before=numbers[0])


class HitList(DocumentItems):
    """Hits as the list of a document, and beside them their sessions, each once."""

    def __init__(self, hits: Sequence[Hit], cursor: Callable[[int], int | str | None]) -> None:
        self._hits = hits
        self._cursor = cursor
        self.items = map(_json_hit, hits)

    def cursor(self, shown: int) -> str | None:
        """See `DocumentItems`."""
        position = self._cursor(shown)
        return None if position is None else str(position)

    def other_fields(self, shown: int) -> dict[str, Any]:
        """See `DocumentItems`."""
        cards = {hit.card.id: hit.card for hit in self._hits[:shown]}
        return {"sessions": [json_card(card) for card in cards.values()]}


def _json_hit(hit: Hit) -> dict[str, Any]:
    entry = str(hit.seq or hit.entry) if hit.entry else ""
    row = {"session": hit.card.id, "place": entry, **hit._asdict(), "marks": [list(mark) for mark in hit.marks]}
    del row["card"]
    return row
