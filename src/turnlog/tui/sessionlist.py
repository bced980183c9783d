"""Sessions as lines, as many columns of each as there is room for; and a preview of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.ask.query import Filter, Query, parse
from turnlog.errors import Invalid
from turnlog.reader.naming.here import of_here
from turnlog.view.markdown.parser import InlineSpan
from turnlog.view.number import dollars
from turnlog.view.terminal.typeset import LineStyle, wrapped
from turnlog.view.time import ago
from turnlog.view.visible import clip, one_line, safe, width

if TYPE_CHECKING:
    from turnlog.catalog import Catalog, ListingRow, Standing
    from turnlog.catalog.answer import Hit

_DOTS = {"running": "green", "waiting": "yellow"}
_TITLE = 24
"""The minimum width of a title, as long as another column can be dropped."""
_WIDEST = 90
"""The maximum width of a title: in wider ones the eye loses the line."""
_PLACES, _LINES, _WHO = 8, 3, 10
"""The maximum number of places in a preview, lines of each, and columns for its role."""
_WORD_END = re.compile(r"[^\W_]$")
_JOINED = re.compile(r"(?<!\S)(?:AND|OR)\s")
_TO_COME = re.compile(r"(?<!\S)(?:(?:AND|OR)\s*)+$")


class ListAnswer(NamedTuple):
    """What fits a query: the sessions of this folder, then the others."""

    query: str
    rows: list[ListingRow]
    here: int
    """How many of them, at the top, are of this folder."""
    standing: Standing
    asked: str
    """The query that was asked: its last word as a beginning, where nobody said it as a word."""


def ask_list(catalog: Catalog, query: str, *, is_here_only: bool) -> ListAnswer:
    """The sessions that fit what was typed so far."""
    asked = completed(query)
    rows = catalog.lines(asked)
    if not rows and (begun := with_open_last_word(asked)):
        rows, asked = catalog.lines(begun), begun
    here = of_here(rows).rows
    names = {row.name for row in here}
    rows = here if is_here_only else here + [row for row in rows if row.name not in names]
    return ListAnswer(query, rows, len(here), catalog.standing(), asked)


def completed(query: str) -> str:
    """What was typed, with what is still to come: the quote, the other side of an `OR`, the parenthesis."""
    if len(re.findall(r'(?<!\\)"', query)) % 2 and not query.endswith('"'):
        query += '"'
    query = _TO_COME.sub("", query)
    return query + ")" * (query.count("(") - query.count(")")) if _JOINED.search(query) else query


def with_open_last_word(query: str) -> str:
    """The query with its last word as the beginning of one; empty where that cannot be meant."""
    try:
        terms = parse(query).sides[-1].terms
    except Invalid:
        return ""
    is_word = bool(terms) and terms[-1].kind == "word" and not terms[-1].negated and query.endswith(terms[-1].text)
    return f"{query}*" if is_word and _WORD_END.search(query) else ""


def words_in(query: str) -> Query:
    """The query; an empty one for what cannot be understood."""
    try:
        return parse(completed(query))
    except Invalid:
        return Query()


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


class _Column(NamedTuple):
    cells: list[str]
    width: int
    rank: int
    """Where not all fit, the one with the highest rank goes first."""
    is_right: bool


def list_lines(rows: Sequence[ListingRow], chosen: int, room: int, style: LineStyle, now: float) -> list[str]:
    """A line for each of these rows, as wide as there is room; the chosen one stands out."""
    columns = _fitting(_columns(rows, now), room - 2)
    title_room = min(_WIDEST, max(1, room - 2 - _taken(columns)))
    lines: list[str] = []
    for index, row in enumerate(rows):
        facts = "".join("  " + _cell(column, index) for column in columns)
        title = _padded(clip(one_line(row.title or "(no title)"), title_room), title_room)
        if index == chosen:
            lines.append(style.paint(f"{'●' if row.state in _DOTS else ' '} {title}{facts}", "reverse"))
        else:
            dot = style.paint("●", _DOTS[row.state]) if row.state in _DOTS else " "
            lines.append(f"{dot} {title}{style.paint(facts, 'dim')}")
    return lines


def _columns(rows: Sequence[ListingRow], now: float) -> list[_Column]:
    """The columns beside the title. The age says most, then where, who, how much it cost, how long it is."""
    return [
        _column([one_line(row.workspace.rstrip("/").rpartition("/")[2]) for row in rows], 16, rank=1),
        _column([one_line(row.agent) for row in rows], 12, rank=2),
        _column([f"{row.turns:,}" if row.turns else "" for row in rows], 6, rank=4, is_right=True),
        _column([_cost(row) for row in rows], 9, rank=3, is_right=True),
        _column([ago(row.updated_ms, now).removesuffix(" ago") for row in rows], 8, rank=0, is_right=True),
    ]


def _column(cells: list[str], most: int, rank: int, *, is_right: bool = False) -> _Column:
    return _Column(cells, min(most, max(map(width, cells), default=0)), rank, is_right)


def _fitting(columns: list[_Column], room: int) -> list[_Column]:
    """The columns beside which a title has room, in their order."""
    columns = [column for column in columns if column.width]
    while columns and room - _taken(columns) < _TITLE:
        columns.remove(max(columns, key=lambda column: column.rank))
    return columns


def _taken(columns: list[_Column]) -> int:
    return sum(column.width + 2 for column in columns)


def _cost(row: ListingRow) -> str:
    return dollars(row.cost_micros, is_partial=row.is_partial) if row.cost_micros or row.is_partial else ""


def _padded(text: str, room: int) -> str:
    return text + " " * (room - width(text))


def _cell(column: _Column, index: int) -> str:
    text = clip(column.cells[index], column.width)
    space = " " * (column.width - width(text))
    return space + text if column.is_right else text + space


# ── the preview ───────────────────────────────────────────────────────────────────────────────────


def ask_preview(catalog: Catalog, name: str, query: str) -> list[Hit]:
    """Where the words are in a session, or else its last messages, oldest first."""
    named = Filter("session", (f"={name}",))
    asked = words_in(query)
    if asked.every_term:
        hits = [hit for hit in catalog.search(str(asked.within(named)), limit=_PLACES) if hit.entry]
        if hits:
            return hits[::-1]
    return catalog.search(f"{Query((), (named,))} role:user,assistant,summary", limit=_PLACES)[::-1]


def preview_lines(hits: Sequence[Hit], room: int, height: int, style: LineStyle) -> list[str]:
    """As many of the newest places as there is room for, each with who said it."""
    preview: list[str] = []
    for hit in reversed(hits):
        lines = _place(hit, room, style)
        if preview and len(preview) + len(lines) > height:
            break
        preview = lines[:height] + preview
    return preview


def _place(hit: Hit, room: int, style: LineStyle) -> list[str]:
    who = hit.tool.split(", ")[0] if hit.role == "tool" and hit.tool else hit.role
    lead = style.paint(_padded(clip(one_line(who), _WHO), _WHO), "bold" if hit.role == "user" else "dim")
    lines = list(islice(wrapped(_spans(hit), style, max(8, room - _WHO - 2)), _LINES))
    return [f"{' ' * _WHO if number else lead}  {line}" for number, line in enumerate(lines)]


def _spans(hit: Hit) -> list[InlineSpan]:
    """The snippet is on one line already; where the words are, it is painted."""
    spans: list[InlineSpan] = []
    at = 0
    for begin, end in hit.marks:
        spans += [
            InlineSpan(safe(hit.snippet[at:begin])),
            InlineSpan(safe(hit.snippet[begin:end]), ("bold", "underline")),
        ]
        at = end
    return [*spans, InlineSpan(safe(hit.snippet[at:]))]
