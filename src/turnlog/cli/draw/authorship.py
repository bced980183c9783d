"""Draws lines of a file, each with the turn that wrote it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from turnlog.blame.authorship import BlamedLine, LineAuthor
from turnlog.cli.draw.table import Column, grid
from turnlog.cli.frame.terminal import coloured, screen_width
from turnlog.log.ids import handle_of
from turnlog.view.number import count
from turnlog.view.time import local_minute
from turnlog.view.visible import clip, one_line, safe, width

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


def session_name(author: LineAuthor) -> str:
    """Return what to type for the session: its handle, or the beginning of an id that another agent gave."""
    name, lead = handle_of(author.session), f"{author.agent}-"
    return name[: len(lead) + _NATIVE] if name.startswith(lead) else name


def blamed_lines(lines: list[BlamedLine]) -> Iterator[str]:
    """Yield for each line who wrote it, its number, and its text."""
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
    """Return a table of the turns that these lines are from, the one with the most lines first."""
    counts: Counter[LineAuthor] = Counter()
    for line in lines:
        counts.update((line.author,) if line.author is not None else line.authors)
    rows = counts.most_common()
    if not rows:
        return []
    authors = [author for author, _ in rows]
    columns = [
        Column("SESSION", [session_name(author) for author in authors]),
        Column("TURN", [str(author.turn) for author in authors], right=True),
        Column("LINES", [f"{number:,}" for _, number in rows], right=True),
        Column("AGENT", [author.agent or "" for author in authors], drop=2),
        Column("MODEL", [author.model or "" for author in authors], drop=3),
        Column("WHEN", [local_minute(author.at) for author in authors], drop=1),
        Column("ENTRY", [str(author.entry) for author in authors], right=True),
        Column("PROMPT", [author.prompt or "" for author in authors], least=12),
    ]
    return grid([column for column in columns if any(column.cells)])
