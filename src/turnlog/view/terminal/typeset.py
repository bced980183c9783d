"""Markdown as lines for a terminal: wrapped, and marked with colours, or with the marks it was written with."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from turnlog.view.markdown.parser import Block, Code, Heading, InlineSpan, ItemList, Paragraph, Quote, Table
from turnlog.view.time import second
from turnlog.view.visible import beginning, characters, width

_CODES = {
    "bold": "1", "dim": "2", "italic": "3", "underline": "4", "strike": "9", "red": "31", "green": "32",
    "yellow": "33", "blue": "34", "purple": "35", "cyan": "36", "reverse": "7",
}  # fmt: skip
_PLAIN_MARKS = {"bold": "**", "italic": "*", "strike": "~~", "code": "`"}
_NARROWEST = 8
"""A column of a table is not made narrower than this."""
_AHEAD = 2_000
"""How many characters of a long word are looked at to fill a line, at least: to look at all would be quadratic."""


class LineStyle(Struct, frozen=True):
    """How lines are drawn. `room` is the width in columns; None: unknown, nothing is wrapped."""

    room: int | None = None
    has_colour: bool = False
    is_full: bool = False
    mark: int = 0
    """The entry that was asked for: it is pointed at."""
    moment: Callable[[datetime | None], str] = second
    unfolding: str = "--full"
    """What shows the lines that are folded away."""
    on_shortened: Callable[[], None] = lambda: None
    """Called when lines are folded away, or one is cut."""

    def paint(self, text: str, *styles: str) -> str:
        """Text that is safe already, in these styles."""
        codes = ";".join(_CODES[name] for name in styles if name)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.has_colour and codes and text else text


def blocks_lines(blocks: list[Block], style: LineStyle, room: int) -> Iterator[str]:
    """Blocks of Markdown, with a line between them."""
    for index, block in enumerate(blocks):
        is_tight = isinstance(block, ItemList) and index > 0 and isinstance(blocks[index - 1], Paragraph)
        if index and not is_tight:
            yield ""
        yield from _block(block, style, max(20, room))


def _block(block: Block, style: LineStyle, room: int) -> Iterator[str]:
    if isinstance(block, Heading):
        mark = "" if style.has_colour else "#" * block.level + " "
        inner = [InlineSpan(mark), *block.spans] if mark else block.spans
        styles = ("bold", "underline") if block.level < 3 else ("bold",)
        yield from (style.paint(line, *styles) for line in wrapped(_unmarked(inner), style, room))
    elif isinstance(block, Paragraph):
        yield from wrapped(block.spans, style, room)
    elif isinstance(block, Code):
        yield from _code(block, style)
    elif isinstance(block, Quote):
        bar = style.paint("│ ", "dim")
        yield from (bar + line for line in blocks_lines(block.blocks, style, room - 2))
    elif isinstance(block, ItemList):
        for number, item in enumerate(block.items):
            mark = f"{block.first + number}. " if block.first is not None else "• "
            for index, line in enumerate(_tight(item, style, room - len(mark))):
                yield (mark if index == 0 else " " * len(mark)) + line
    elif isinstance(block, Table):
        yield from _table(block, style, room)
    else:
        yield style.paint("─" * min(room, 40), "dim")


def _tight(blocks: list[Block], style: LineStyle, room: int) -> Iterator[str]:
    """The inside of an item: no lines between its blocks."""
    for block in blocks:
        yield from _block(block, style, max(20, room))


def _unmarked(spans: list[InlineSpan]) -> list[InlineSpan]:
    return [InlineSpan(span.text) for span in spans]


def _code(block: Code, style: LineStyle) -> Iterator[str]:
    lines = block.text.removesuffix("\n").expandtabs(4).split("\n")
    is_change = block.language in ("diff", "patch")
    if not style.has_colour:
        yield f"```{block.language}"
        yield from lines
        yield "```"
        return
    for line in lines:
        bar = style.paint("▏ ", "dim")
        yield bar + (diff_line(line, style) if is_change else style.paint(line, "cyan"))


def _table(block: Table, style: LineStyle, room: int) -> Iterator[str]:
    cells = [[_flat(cell) for cell in row] for row in (block.head, *block.rows)]
    if (_NARROWEST + 3) * len(block.head) - 3 > room:
        yield from _records(cells, style, room)
        return
    widths = [max(1, *(width(row[index]) for row in cells)) for index in range(len(block.head))]
    widths = _narrowed(widths, room - 3 * (len(widths) - 1))
    for number, row in enumerate(cells):
        wrapped_cells = [list(wrapped([InlineSpan(text)], style, size)) for text, size in zip(row, widths, strict=True)]
        for index in range(max(map(len, wrapped_cells))):
            parts: list[str] = []
            for lines, size, is_right in zip(wrapped_cells, widths, block.right, strict=True):
                text = lines[index] if index < len(lines) else ""
                space = " " * (size - width(text))
                parts.append(space + text if is_right else text + space)
            line = " │ ".join(parts).rstrip()
            yield style.paint(line, "bold") if number == 0 else line
        if number == 0:
            yield style.paint("─┼─".join("─" * size for size in widths), "dim")


def _narrowed(widths: list[int], room: int) -> list[int]:
    """The widths of columns that share so much room: the widest ones become narrower, those on the left first."""
    if sum(widths) <= room:
        return widths
    limit = bisect_right(range(max(widths)), room, key=lambda size: sum(min(one, size) for one in widths)) - 1
    left = room - sum(min(one, limit) for one in widths)
    wide = [index for index, one in enumerate(widths) if one > limit]
    wider = wide[len(wide) - left :]
    return [min(one, limit + (index in wider)) for index, one in enumerate(widths)]


def _records(cells: list[list[str]], style: LineStyle, room: int) -> Iterator[str]:
    """A table that has more columns than there is room for: a line for each cell, under the name of its column."""
    head, *rows = cells
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, text in zip(head, row, strict=True):
            yield from wrapped([InlineSpan(f"{name}: {text}")], style, room)


def _flat(spans: list[InlineSpan]) -> str:
    return "".join(span.text for span in spans)


def wrapped(spans: list[InlineSpan], style: LineStyle, room: int) -> Iterator[str]:
    """Spans in lines of at most this many columns, at least one, broken between words where possible."""
    room = max(1, room)
    line: list[str] = []
    used = 0
    space: tuple[str, InlineSpan] | None = None  # only drawn where a word follows on the same line
    for text, span in _words(spans, style):
        if text == "\n":
            yield "".join(line)
            line, used, space = [], 0, None
            continue
        if text.isspace():
            space = text, span
            continue
        before = space[0] if space is not None else ""
        size = width(text)
        if used and used + len(before) + size > room:
            yield "".join(line)
            line, used, before = [], 0, ""
        if before and space is not None and len(before) < room:
            line.append(_styled(before, space[1], style))
            used += len(before)
        space = None
        at, ahead = 0, max(_AHEAD, 8 * room)
        while used + size > room and at < len(text):
            stretch = text[at : at + ahead]
            part = beginning(stretch, max(1, room - used)) or next(iter(characters(stretch)))
            line.append(_styled(part, span, style))
            yield "".join(line)
            at += len(part)
            size = width(text[at:]) if len(text) - at < ahead else size - width(part)
            line, used = [], 0
        line.append(_styled(text[at:], span, style))
        used += size
    yield "".join(line)


def _words(spans: list[InlineSpan], style: LineStyle) -> Iterator[tuple[str, InlineSpan]]:
    for span in spans:
        text = span.text
        if not style.has_colour:
            mark = "".join(_PLAIN_MARKS[name] for name in span.marks)
            text = f"{mark}{text}{mark[::-1]}"
        yield from _split(text, span)
        if span.url and span.url != span.text:
            yield from _split(f" ({span.url})", InlineSpan("", ("dim",)))


def _split(text: str, span: InlineSpan) -> Iterator[tuple[str, InlineSpan]]:
    for number, part in enumerate(text.split("\n")):
        if number:
            yield "\n", span
        for word in re.findall(r" +|[^ ]+", part):
            yield word, span


def _styled(text: str, span: InlineSpan, style: LineStyle) -> str:
    styles = ["cyan" if mark == "code" else mark for mark in span.marks]
    return style.paint(text, *styles, "underline" if span.url else "") if styles or span.url else text


def diff_line(line: str, style: LineStyle) -> str:
    """A line of a diff in its colour."""
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
    return style.paint(line, colour)
