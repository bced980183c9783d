"""Lines with who wrote them, for people and for programs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from turnlog.blame.authorship import BlamedLine, LineAuthor
from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import clip, coloured, moment, one_line, safe, screen_width, width
from turnlog.cli.frame import shape
from turnlog.log.ids import handle_of
from turnlog.view.number import count

_LONG = 2000
_SHOWN = 200
_NATIVE = 8
_BROAD = 32
IN_WORDS = {
    "before": "there before the first checkpoint",
    "between": "changed between turns",
    "since": "changed since the last checkpoint",
    "git": "brought by git",
    "several": "written while several turns ran at once",
}
"""Why a line is nobody's."""
AUTHOR = {
    "session": shape.text(null=True),
    "turn": shape.number(null=True),
    "agent": shape.text(null=True),
    "model": shape.text(null=True),
    "at": shape.time(null=True),
    "prompt": shape.text(null=True),
    "entry": shape.number(null=True),
}
"""A turn that wrote a line, as `--json` has it."""
LINE = {
    "line": shape.number(),
    "text": shape.text(),
    **AUTHOR,
    "why": shape.text(f"null if one turn wrote it; otherwise {', '.join(f'`{why}`' for why in IN_WORDS)}", null=True),
    "commit": shape.text("for `git`", null=True),
    "turns": shape.each("for `several`", AUTHOR),
}


def session_name(author: LineAuthor) -> str:
    """What to type for the session: its handle, or the beginning of an id that another agent gave."""
    name, lead = handle_of(author.session), f"{author.agent}-"
    return name[: len(lead) + _NATIVE] if name.startswith(lead) else name


def author_fields(author: LineAuthor | None) -> dict[str, Any]:
    """A turn for programs; nothing but nulls where there is none."""
    names = ("session", "turn", "agent", "model", "at", "prompt", "entry")
    return {name: getattr(author, name, None) for name in names}


def line_fields(line: BlamedLine) -> dict[str, Any]:
    """A line for programs."""
    fields: dict[str, Any] = {"line": line.line, "text": line.text, **author_fields(line.author), "why": line.why}
    if line.author is None:
        fields["at"] = line.at
    return {**fields, "commit": line.commit, "turns": [author_fields(one) for one in line.authors]}


def blamed_lines(lines: list[BlamedLine]) -> Iterator[str]:
    """A line each: who, its number, what it says."""
    names = [_who(line) for line in lines]
    broad = max(map(width, names), default=0)
    digits = len(str(lines[-1].line)) if lines else 0
    room = screen_width()
    for line, name in zip(lines, names, strict=True):
        padded = name + " " * (broad - width(name))
        lead = coloured(padded, "cyan" if line.author else "dim", sys.stdout)
        text = _text(line.text)
        if room is not None:
            text = clip(text, max(10, room - broad - digits - 4))
        yield f"{lead}  {line.line:>{digits}}  {text}".rstrip()


def _who(line: BlamedLine) -> str:
    if line.author is not None:
        return one_line(f"{session_name(line.author)} {line.author.turn}")
    if line.authors:
        names = one_line(" | ".join(f"{session_name(one)} {one.turn}" for one in line.authors))
        return names if width(names) <= _BROAD else str(line.why)  # the table below names them
    return f"{line.why} {line.commit[:9]}" if line.commit else str(line.why)


def _text(text: str) -> str:
    """A line as a terminal takes it; of a very long one only the beginning, and how long it is."""
    if len(text) <= _LONG:
        return safe(text.expandtabs(4))
    return f"{safe(text[:_SHOWN].expandtabs(4))}… ({count(len(text), 'character')})"


def turn_table(lines: Iterable[BlamedLine]) -> list[str]:
    """The turns that these lines are from, the one with the most first; what else is to be said of them."""
    counts: Counter[LineAuthor] = Counter()
    for line in lines:
        counts.update((line.author,) if line.author is not None else line.authors)
    rows = counts.most_common()
    if not rows:
        return []
    authors = [author for author, _ in rows]
    columns = [
        Column("SESSION", [session_name(one) for one in authors]),
        Column("TURN", [str(one.turn) for one in authors], right=True),
        Column("LINES", [f"{number:,}" for _, number in rows], right=True),
        Column("AGENT", [one.agent or "" for one in authors], drop=2),
        Column("MODEL", [one.model or "" for one in authors], drop=3),
        Column("WHEN", [moment(one.at)[:16] for one in authors], drop=1),
        Column("ENTRY", [str(one.entry) for one in authors], right=True),
        Column("PROMPT", [one.prompt or "" for one in authors], least=12),
    ]
    return grid([column for column in columns if any(column.cells)])
