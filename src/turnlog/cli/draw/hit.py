"""Places where something was found, as `--json` has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.listing import json_card
from turnlog.cli.frame.itemlist import PrintedList, bad_cursor

if TYPE_CHECKING:
    from turnlog.catalog.answer import Hit


def going_on(cursor: str, page: int | None, *, is_paged: bool) -> tuple[int | None, int | None, int]:
    """What `--cursor` means: places older than one; or which page, and how much of it was shown."""
    first, dot, rest = cursor.partition(".")
    if not cursor.isascii() or not first.isdecimal() or bool(dot) != is_paged or (dot and not rest.isdecimal()):
        raise bad_cursor(cursor)
    return (None, int(first), int(rest)) if is_paged else (int(first), page, 0)


def printed_hits(hits: Sequence[Hit], cursor: Callable[[int], int | str | None]) -> PrintedList:
    """Hits for programs, and of those that are shown the sessions, each once."""

    class _Hits(PrintedList):
        def cursor(self, shown: int) -> str | None:
            position = cursor(shown)
            return None if position is None else str(position)

        def beside(self, shown: int) -> dict[str, Any]:
            cards = {hit.card.id: hit.card for hit in hits[:shown]}
            return {"sessions": [json_card(card) for card in cards.values()]}

    listed = _Hits(())
    listed.items = map(_for_programs, hits)
    return listed


def _for_programs(hit: Hit) -> dict[str, Any]:
    place = str(hit.seq or hit.entry) if hit.entry else ""
    row = {"session": hit.card.id, "place": place, **hit._asdict(), "marks": [list(mark) for mark in hit.marks]}
    del row["card"]
    return row
