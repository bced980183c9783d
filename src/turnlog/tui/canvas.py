"""Lines on the screen. What is shown is text with the colours of `view.typeset`; only lines that changed are drawn."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from turnlog.view.visible import width

_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_STYLES = {
    "1": Style(bold=True), "2": Style(dim=True), "3": Style(italic=True), "4": Style(underline=True),
    "7": Style(reverse=True), "9": Style(strike=True), "31": Style(color="red"), "32": Style(color="green"),
    "33": Style(color="yellow"), "34": Style(color="blue"), "35": Style(color="magenta"), "36": Style(color="cyan"),
}  # fmt: skip
_MARK = Style(reverse=True)
_NONE = Style()


@lru_cache(maxsize=200)
def _style(codes: str) -> Style:
    style = _NONE
    for code in codes.split(";"):
        style += _STYLES.get(code, _NONE)
    return style


def strip_of(line: str, room: int, marks: re.Pattern[str] | None = None) -> Strip:
    """A painted line for Textual, this many columns wide; matches of the pattern are marked."""
    segments: list[Segment] = []
    style = _NONE
    for number, part in enumerate(_CODE.split(line)):
        if number % 2:
            style = _style(part)
        elif part:
            segments.append(Segment(part, style))
    if marks is not None:
        segments = _marked(segments, marks)
    return Strip(segments).adjust_cell_length(room, _NONE)


def _marked(segments: list[Segment], marks: re.Pattern[str]) -> list[Segment]:
    """A match may go over several pieces that are painted each in its own way."""
    spans = [match.span() for match in marks.finditer("".join(one.text for one in segments)) if match[0]]
    if not spans:
        return segments
    marked: list[Segment] = []
    at = 0
    for text, style, _ in segments:
        cuts = {0, len(text)}
        cuts |= {edge - at for span in spans for edge in span if at < edge < at + len(text)}
        for begin, end in pairwise(sorted(cuts)):
            is_hit = any(first <= at + begin < last for first, last in spans)
            marked.append(Segment(text[begin:end], (style or _NONE) + _MARK if is_hit else style))
        at += len(text)
    return marked


def _cells(line: str, room: int) -> list[tuple[str, str]] | None:
    """Each column and how it is painted; None where characters are not all one column wide."""
    cells: list[tuple[str, str]] = []
    codes = ""
    for number, part in enumerate(_CODE.split(line)):
        if number % 2:
            codes = "" if part == "0" else part
        elif part and width(part) != len(part):
            return None
        else:
            cells += [(one, codes) for one in part]
    return (cells + [(" ", "")] * room)[:room]


def changed_until(before: str, after: str, room: int) -> int:
    """The column up to which two lines differ. Textual draws a part of a line from its beginning."""
    old, new = _cells(before, room), _cells(after, room)
    if old is None or new is None:
        return room
    return next((x + 1 for x in range(room - 1, -1, -1) if old[x] != new[x]), 0)


class Canvas(Widget):
    """A part of the screen that shows lines. `Pressed` tells where it was clicked."""

    class Pressed(Message):
        """Somebody clicked there."""

        def __init__(self, canvas: Canvas, x: int, y: int) -> None:
            super().__init__()
            self.canvas, self.x, self.y = canvas, x, y

    class Scrolled(Message):
        """The mouse wheel moved by this many lines; up is negative."""

        def __init__(self, canvas: Canvas, lines: int) -> None:
            super().__init__()
            self.canvas, self.lines = canvas, lines

    def __init__(self, id: str) -> None:
        super().__init__(id=id)
        self.lines: list[str] = []
        self.marks: re.Pattern[str] | None = None

    def show(self, lines: list[str], marks: re.Pattern[str] | None = None) -> None:
        """Show these lines from the top; what was below them goes."""
        before, self.lines = self.lines, lines
        if marks != self.marks:
            self.marks = marks
            self.refresh()
            return
        if before == lines:
            return
        most = max(len(before), len(lines))
        old, new = (part + [""] * (most - len(part)) for part in (before, lines))
        room = self.size.width
        regions = [
            Region(0, y, changed_until(old[y], new[y], room), 1)
            for y in range(min(most, self.size.height))
            if old[y] != new[y]
        ]
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """See `Widget`."""
        return strip_of(self.lines[y] if y < len(self.lines) else "", self.size.width, self.marks)

    def on_click(self, event: events.Click) -> None:
        """See `Pressed`."""
        self.post_message(self.Pressed(self, event.x, event.y))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """See `Scrolled`."""
        event.stop()
        self.post_message(self.Scrolled(self, 3))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """See `Scrolled`."""
        event.stop()
        self.post_message(self.Scrolled(self, -3))
