"""Cells of tables, as people read them, and tables of many rows: ten thousand are no reason to wait."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from turnlog.cli.draw.text import clip, one_line, safe, screen_width, width

_ODD = re.compile(r"[^ -~]")
_STEPS = ((60, 1, "s"), (3_600, 60, "m"), (86_400, 3_600, "h"), (14 * 86_400, 86_400, "d"), (60 * 86_400, 604_800, "w"))


def ago(ms: int | None, now: float) -> str:
    """How long ago a time in milliseconds was: `now`, `5m ago`, `3d ago`."""
    if ms is None:
        return ""
    past = now - ms / 1000
    if past < 10:
        return "now"  # also what comes out of a clock that is ahead of ours
    for below, unit, name in _STEPS:
        if past < below:
            return f"{int(past // unit)}{name} ago"
    months = int(past // (30.44 * 86_400))
    return f"{months}mo ago" if months < 24 else f"{months // 12}y ago"


def clock_times(times: Sequence[int | None]) -> list[str]:
    """Times in milliseconds as this place tells them: `2026-11-15 14:02`. Quick for thousands of them in order."""
    clock = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(60)]
    told: list[str] = []
    text, midnight, first, end = "", 0, 0, 0
    for ms in times:
        if ms is None:
            told.append("")
            continue
        minute = ms // 60_000
        if not first <= minute < end:
            text, midnight, first, end = _day(minute)
        told.append(text + clock[minute - midnight])
    return told


def _day(minute: int) -> tuple[str, int, int, int]:
    """The day around a minute since 1970: its name, when it began, and between which minutes that holds."""
    at = time.localtime(minute * 60)
    midnight = minute - at.tm_hour * 60 - at.tm_min
    text, end = time.strftime("%Y-%m-%d ", at), midnight + 1_440
    edges = (time.localtime(edge * 60) for edge in (midnight, end - 1))
    if [(edge.tm_yday, edge.tm_gmtoff) for edge in edges] == [(at.tm_yday, at.tm_gmtoff)] * 2:
        return text, midnight, midnight, end
    return text, midnight, minute, minute + 1  # clocks are put forward or back on that day


def plain(text: str) -> str:
    """The text on one line, made safe; quick for what is plain already."""
    return text if text.isascii() and text.isprintable() and "  " not in text else one_line(text)


def all_plain(texts: list[str]) -> list[str]:
    """The same for many: one look at all of them is often enough."""
    joined = "|".join(texts)
    is_plain = joined.isprintable() and "  " not in joined and (joined.isascii() or safe(joined) == joined)
    return texts if is_plain else [plain(text) for text in texts]


class Column:
    """A column of a table. Whatever its cells are made of, they are made safe here."""

    def __init__(self, head: str, cells: list[str], *, right: bool = False, least: int = 0, drop: int = 0) -> None:
        self.head = head
        self.cells = all_plain(cells)
        self.right = right
        self.least = least
        """Down to how many columns it may be cut; 0 for what is never cut."""
        self.drop = drop
        """Left out where there is no room for it, the highest number first; 0 for what always stays."""
        self.width = 0
        self.is_easy = False
        """Whether in all of its cells a character is a column of the screen."""

    def measure(self) -> None:
        """How wide the widest cell is."""
        self.is_easy = "".join(self.cells).isascii()
        widest = max(map(len if self.is_easy else width, self.cells), default=0)
        self.width = max(len(self.head), widest)


Paint = Callable[[str, str], str]
"""Colours a padded cell, told the head of its column."""


def grid(columns: Sequence[Column], *, paint: Paint | None = None) -> list[str]:
    """Lines of a table. It fits the screen: columns are left out, then cut, most of all the last one."""
    shown = list(columns)
    room = screen_width()
    is_ragged = not shown[-1].right  # then nobody needs to know how wide the last one is, unless it has to be cut
    for column in shown if room is not None or not is_ragged else shown[:-1]:
        column.measure()
    if room is not None:
        _fit(shown, room)
    *first, last = shown
    is_ragged = not last.right
    lines = ["  ".join([*(_padded(c.head, c) for c in first), last.head if is_ragged else _padded(last.head, last)])]
    rows = zip(*(c.cells for c in shown), strict=True)
    if paint is None and room is None and all(c.is_easy for c in (first if is_ragged else shown)):
        form = "  ".join(f"%{'' if c.right else '-'}{c.width}s" for c in first)
        form += "  %s" if is_ragged else f"  %{last.width}s"
        told = [form % row for row in rows]
        return lines + (told if all(last.cells) else [line.rstrip() for line in told])
    for row in rows:
        parts: list[str] = []
        for cell, column in zip(row, shown, strict=True):
            text = cell if room is None else clip(cell, column.width)
            text = text if column is last and is_ragged else _padded(text, column)
            parts.append(paint(column.head, text) if paint is not None else text)
        lines.append("  ".join(parts).rstrip())
    return lines


def _padded(text: str, column: Column) -> str:
    padding = " " * (column.width - width(text))
    return padding + text if column.right else text + padding


def _fit(shown: list[Column], room: int) -> None:
    def taken() -> int:
        return sum(min(c.least or c.width, c.width) for c in shown) + 2 * (len(shown) - 1)

    while taken() > room and any(c.drop for c in shown):
        shown.remove(max(shown, key=lambda c: c.drop))
    spare = room - taken()
    for column in shown:  # what may be cut gets what is left, the first ones first
        if column.least:
            least = min(column.least, column.width)
            column.width = min(column.width, least + max(0, spare))
            spare -= column.width - least
    if spare < 0:  # a very narrow screen
        shown[-1].width = max(4, shown[-1].width + spare)


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
    """Blanks at the ends stay: there may be a mark."""
    if not _ODD.search(text) and "  " not in text:
        return text
    return safe(re.sub(r"\s+", " ", text))
