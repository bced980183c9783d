"""Hits of a search for people: a line each, or below their sessions."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from turnlog.cli.draw.text import plain
from turnlog.cli.frame.terminal import coloured, screen_width
from turnlog.reader.naming.here import tilde
from turnlog.reader.naming.shortname import short_names
from turnlog.view.number import dollars
from turnlog.view.time import ago, local_minute, local_second
from turnlog.view.visible import beginning, clip, ending, one_line, safe, width

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.catalog.answer import FoundPage, Hit

_WHO = {"assistant": "agent", "user": "you"}
_INDENT = "  "
_ODD = re.compile(r"[^ -~]")


def _who(hit: Hit) -> str:
    if hit.tool:
        return plain(hit.tool)
    return _WHO.get(hit.role, hit.role)


def print_flat(hits: list[Hit]) -> None:
    """Print a line for each hit, for programs such as grep, cut and less."""
    for hit in hits:
        text = marked(_snippet(hit)[0], (), str)
        print(f"{plain(hit.card.name)}  {local_minute(hit.at):16}  {_who(hit)}  {text}")


def print_grouped(page: FoundPage, ids: list[str]) -> None:
    """Print the sessions: of each its newest hits, the command that shows the first, and the one that resumes it."""
    room = screen_width() or 80
    out = sys.stdout
    short = short_names([session.card for session in page.sessions], ids)
    for name, session in zip(short, page.sessions, strict=True):
        for line in _head(session.card, name, room):
            print(line)
        who = min(12, max(len(_who(hit)) for hit in session.hits))
        for hit in session.hits:
            lead = f"{_INDENT}{local_second(hit.at)[5:16]:11}  {clip(_who(hit), who):{who}}  "
            snippet, marks = _fitting_snippet(hit, room - len(lead))
            print(coloured(lead, "dim", out) + marked(snippet, marks, lambda text: coloured(text, "match", out)))
        if session.more:
            print(_INDENT + coloured(f"{session.more:,} more here", "dim", out))
        for command in (_show_command(session.hits[0], name, room), _resume_command(session.hits[0], name)):
            print(_INDENT + coloured(f"→ {command}", "dim", out))
        print()


def _head(card: Card, name: str, room: int) -> list[str]:
    """Name and title, and about it what fits: on the same line, or else on the next one."""
    parts = [card.agent or "", ago(card.updated_ms, time.time())]
    if card.workspace:
        parts.append(tilde(card.workspace) if room >= 100 else card.workspace.rstrip("/").rpartition("/")[2])
    if card.cost_micros:
        parts.append(dollars(card.cost_micros, is_partial=bool(card.unpriced)))
    about = " · ".join(filter(None, map(plain, parts)))
    title = plain(card.heading)
    first = f"{coloured(plain(name), 'cyan', sys.stdout)}  "
    if len(name) + width(title) + width(about) + 4 <= room:
        return [f"{first}{coloured(title, 'bold', sys.stdout)}  {about}"]
    return [
        first + coloured(clip(title, room - len(name) - 2), "bold", sys.stdout),
        _INDENT + clip(about, room - len(_INDENT)),
    ]


def _snippet(hit: Hit) -> tuple[str, list[tuple[int, int]]]:
    """The snippet, without the name of the tool at its beginning: that stands beside it."""
    lead = f"{hit.tool} ⏎ "
    skipped = len(lead) if hit.tool and hit.snippet.startswith(lead) else 0
    marks = [(start - skipped, end - skipped) for start, end in hit.marks if start >= skipped]
    return (hit.snippet[skipped:], marks) if marks else (hit.snippet, list(hit.marks))


def _fitting_snippet(hit: Hit, room: int) -> tuple[str, list[tuple[int, int]]]:
    """Return as much of the snippet as fits, with its first mark in it."""
    text, all_marks = _snippet(hit)
    if width(text) <= room:
        return text, all_marks
    first = all_marks[0][0] if all_marks else 0
    start = first - len(ending(text[:first], room // 3))
    end = start + len(beginning(text[start:], room))
    if end == len(text):  # there is room for more before it
        start = end - len(ending(text, room))
    cut = text[start:end]
    marks = [(max(a, start) - start, min(b, end) - start) for a, b in all_marks if a < end and b > start]
    if start:
        less = len(beginning(cut, 1) or beginning(cut, 2)) - 1
        cut = "…" + cut[less + 1 :]
        marks = [(max(a - less, 1), b - less) for a, b in marks if b - less > 1]
    if end < len(text):
        cut = cut[: -len(ending(cut, 1) or ending(cut, 2))] + "…"
        marks = [(a, min(b, len(cut) - 1)) for a, b in marks if a < len(cut) - 1]
    return cut, marks


def marked(text: str, marks: Sequence[tuple[int, int]], paint: Callable[[str], str]) -> str:
    """A text on one line and made safe, with what is between the marks painted."""
    parts: list[str] = []
    position = 0
    for start, end in marks:
        parts += [_inline(text[position:start]), paint(_inline(text[start:end]))]
        position = end
    parts.append(_inline(text[position:]))
    return "".join(parts).strip()


def _inline(text: str) -> str:
    """Return a text on one line and made safe. Blanks at its ends stay: there may be a mark."""
    if not _ODD.search(text) and "  " not in text:
        return text
    return safe(re.sub(r"\s+", " ", text))


def _show_command(hit: Hit, name: str, room: int) -> str:
    """The command that shows the place; without the place, where an agent's name for it is too long for a line."""
    from shlex import join

    command = ["turnlog", "show", name]
    whole = join([*command, *(("--at", str(hit.seq or hit.entry)) if hit.entry else ())])
    return whole if whole.isprintable() and len(whole) + len(_INDENT) + 2 <= room else one_line(join(command))


def _resume_command(hit: Hit, name: str) -> str:
    from shlex import join

    return one_line(join(name if word == hit.card.name else word for word in hit.resume))
