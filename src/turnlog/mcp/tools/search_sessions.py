"""The places where something was said or done: one line for each hit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnlog.catalog.ask.query import FILTERS, parse
from turnlog.catalog.ask.recall import recall, skip_none
from turnlog.errors import Invalid
from turnlog.mcp.caller import is_call, left_out
from turnlog.mcp.page import SEARCH_BYTES, fitted, minute, offset_of, result
from turnlog.mcp.quote import QUOTED
from turnlog.view.visible import clip, one_line

if TYPE_CHECKING:
    from turnlog.catalog.answer import Hit, RecalledPage, RecalledPlace
    from turnlog.mcp.library import Library

_LIMIT = 5
_NAME = 40
"""The maximum length of a tool's name or a word in an answer."""
_LONGEST, _WORDS = 20_000, 60
"""The maximum length of a query, and the maximum number of its words that are searched."""
_FILTERED = re.compile(rf"(?:^|\s)-?(?:{'|'.join(FILTERS)}):")


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    query, limit, offset = arguments["query"], arguments.get("limit", _LIMIT), offset_of(arguments.get("cursor"))
    if not query.strip():
        raise Invalid("query: nothing to look for", hint="an error message, a file, a topic, a question")
    query, remarks = _understood(query)
    hidden = left_out(query, library.own(meta))
    asked = library.scope.narrowed(query, *hidden.filters)

    def ask() -> RecalledPage:
        skips, clean = is_call if hidden.calls else skip_none, library.quotes.passage
        return library.catalog.ask(recall, asked, limit=limit, offset=offset, skips=skips, clean=clean)

    page = ask()
    if not page.places:
        library.catalog.refresh(at_once=True)  # it may have been said a moment ago
        page = ask()
    allowed = [
        number
        for number, place in enumerate(page.places)
        if library.scope.covers(place.hit.card.workspace) and not hidden.has(place.hit.card)
    ]
    rows = [_row(library, page.places[number]) for number in allowed]
    notes = [*remarks, *library.notes()]
    if page.is_cut:
        notes.append("That is a lot to look through, and only the newest was: another word or since: makes it less.")

    def make(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        end = allowed[len(rows) - 1] + 1 if rows and len(rows) < len(allowed) else len(page.places)
        left = page.left + len(page.places) - end
        cursor = str(offset + end) if left else None
        more = f"{'more than ' if page.is_more else ''}{left:,} more" if left else ""
        lines = [_line(row) for row in rows]
        foot = [f'{more}: cursor "{cursor}"'] if cursor else []
        head = QUOTED if rows else f"Nothing found in sessions of {library.scope.words}."
        if rows and "has" in rows[0]:
            head += " No place has all of the words; these have most of the rarest, the best first."
        data: dict[str, Any] = {"hits": list(rows), "left": left, "cursor": cursor, "note": QUOTED}
        if notes:
            data["notes"] = notes
        return result("\n".join([head, *lines, *foot, *notes]), data)

    return fitted(rows, make, SEARCH_BYTES)


def _understood(query: str) -> tuple[str, list[str]]:
    """The query, and a note; a sentence or error message that is no valid query becomes its plain words."""
    try:
        parse(query)
    except Invalid as error:
        words = list(dict.fromkeys(re.findall(r"[^\W_]+", query[:_LONGEST])))[:_WORDS]
        if _FILTERED.search(query) or not words:
            raise
        return " ".join(words), [f"Taken as plain words: {one_line(error.message)}."]
    return query, []


def entry_of(hit: Hit) -> int | str:
    """The entry of a hit for `read_session`; 0 for the beginning."""
    return hit.seq or hit.entry or 0


def _row(library: Library, place: RecalledPlace) -> dict[str, Any]:
    hit, line = place.hit, library.quotes.line
    row: dict[str, Any] = {
        "session": hit.card.id,
        "entry": entry_of(hit),
        "at": minute(hit.at),
        "agent": hit.card.agent or "",
        "role": hit.role,
        "tool": clip(line(hit.tool), _NAME),
        "snippet": line(hit.snippet),
    }
    if not hit.tool:
        del row["tool"]
    if place.is_near:
        row["has"] = [clip(word, _NAME) for word in place.words]
    return row


def _line(row: dict[str, Any]) -> str:
    near = f"~({', '.join(row['has'])}) " if "has" in row else ""
    where = f"{row['session']} {row['entry']} {row['at']} {row['agent']}"
    return f"{where} {row.get('tool') or row['role']}: {near}{row['snippet']}"
