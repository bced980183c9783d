"""Markdown as lines for a terminal: wrapped, and marked with colours, or with the marks it was written with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from msgspec import Struct

from turnlog.view.markdown import Block, Code, Heading, InlineSpan, ItemList, Paragraph, Quote, Table
from turnlog.view.visible import beginning, characters, width

_CODES = {
    "bold": "1", "dim": "2", "italic": "3", "underline": "4", "strike": "9", "red": "31", "green": "32",
    "yellow": "33", "blue": "34", "purple": "35", "cyan": "36", "reverse": "7",
}  # fmt: skip
_PLAIN_MARKS = {"bold": "**", "italic": "*", "strike": "~~", "code": "`"}
_NARROWEST = 8
"""A column of a table is not made narrower than this."""


class Screen(Struct, frozen=True):
    """How it is drawn: how wide (None: nobody says, and nothing is wrapped), in colour, folded or in full."""

    room: int | None = None
    has_colour: bool = False
    is_full: bool = False
    mark: int = 0
    """The entry that was asked for: it is pointed at."""
    moment: Callable[[datetime | None], str] = lambda at: "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")
    unfolding: str = "--full"
    """What shows the lines that are folded away."""

    def paint(self, text: str, *styles: str) -> str:
        """Text that is safe already, in these styles."""
        codes = ";".join(_CODES[style] for style in styles if style)
        return f"\x1b[{codes}m{text}\x1b[0m" if self.has_colour and codes and text else text


def blocks_lines(blocks: list[Block], screen: Screen, room: int) -> Iterator[str]:
    """Blocks of Markdown, with a line between them."""
    for index, block in enumerate(blocks):
        is_tight = isinstance(block, ItemList) and index > 0 and isinstance(blocks[index - 1], Paragraph)
        if index and not is_tight:
            yield ""
        yield from _block(block, screen, max(20, room))


def _block(block: Block, screen: Screen, room: int) -> Iterator[str]:
    if isinstance(block, Heading):
        mark = "" if screen.has_colour else "#" * block.level + " "
        inner = [InlineSpan(mark), *block.spans] if mark else block.spans
        styles = ("bold", "underline") if block.level < 3 else ("bold",)
        yield from (screen.paint(line, *styles) for line in wrapped(_unmarked(inner), screen, room))
    elif isinstance(block, Paragraph):
        yield from wrapped(block.spans, screen, room)
    elif isinstance(block, Code):
        yield from _code(block, screen)
    elif isinstance(block, Quote):
        bar = screen.paint("│ ", "dim")
        yield from (bar + line for line in blocks_lines(block.blocks, screen, room - 2))
    elif isinstance(block, ItemList):
        for number, item in enumerate(block.items):
            mark = f"{block.first + number}. " if block.first else "• "
            for index, line in enumerate(_tight(item, screen, room - len(mark))):
                yield (mark if index == 0 else " " * len(mark)) + line
    elif isinstance(block, Table):
        yield from _table(block, screen, room)
    else:
        yield screen.paint("─" * min(room, 40), "dim")


def _tight(blocks: list[Block], screen: Screen, room: int) -> Iterator[str]:
    """The inside of an item: no lines between its blocks."""
    for block in blocks:
        yield from _block(block, screen, max(20, room))


def _unmarked(spans: list[InlineSpan]) -> list[InlineSpan]:
    return [InlineSpan(span.text) for span in spans]


def _code(block: Code, screen: Screen) -> Iterator[str]:
    lines = block.text.removesuffix("\n").expandtabs(4).split("\n")
    is_change = block.language in ("diff", "patch")
    if not screen.has_colour:
        yield f"```{block.language}"
        yield from lines
        yield "```"
        return
    for line in lines:
        bar = screen.paint("▏ ", "dim")
        yield bar + (diff_line(line, screen) if is_change else screen.paint(line, "cyan"))


def _table(block: Table, screen: Screen, room: int) -> Iterator[str]:
    cells = [[_flat(cell) for cell in row] for row in (block.head, *block.rows)]
    if (_NARROWEST + 3) * len(block.head) - 3 > room:
        yield from _records(cells, screen, room)
        return
    widths = [max(1, *(width(row[index]) for row in cells)) for index in range(len(block.head))]
    while sum(widths) + 3 * (len(widths) - 1) > room:
        widths[widths.index(max(widths))] -= 1
    for number, row in enumerate(cells):
        columns_ = [list(wrapped([InlineSpan(text)], screen, size)) for text, size in zip(row, widths, strict=True)]
        for index in range(max(map(len, columns_))):
            parts: list[str] = []
            for lines, size, is_right in zip(columns_, widths, block.right, strict=True):
                text = lines[index] if index < len(lines) else ""
                space = " " * (size - width(text))
                parts.append(space + text if is_right else text + space)
            line = " │ ".join(parts).rstrip()
            yield screen.paint(line, "bold") if number == 0 else line
        if number == 0:
            yield screen.paint("─┼─".join("─" * size for size in widths), "dim")


def _records(cells: list[list[str]], screen: Screen, room: int) -> Iterator[str]:
    """A table that has more columns than there is room for: a line for each cell, under the name of its column."""
    head, *rows = cells
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, text in zip(head, row, strict=True):
            yield from wrapped([InlineSpan(f"{name}: {text}")], screen, room)


def _flat(spans: list[InlineSpan]) -> str:
    return "".join(span.text for span in spans)


def wrapped(spans: list[InlineSpan], screen: Screen, room: int) -> Iterator[str]:
    """Spans in lines of at most this many columns, broken between words where possible."""
    line: list[str] = []
    used = 0
    space: tuple[str, InlineSpan] | None = None  # only drawn where a word follows on the same line
    for text, span in _words(spans, screen):
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
            line.append(_styled(before, space[1], screen))
            used += len(before)
        space = None
        while used + size > room:
            part = beginning(text, max(1, room - used)) or next(iter(characters(text)))
            line.append(_styled(part, span, screen))
            yield "".join(line)
            text = text[len(part) :]
            line, used, size = [], 0, width(text)
        line.append(_styled(text, span, screen))
        used += size
    yield "".join(line)


def _words(spans: list[InlineSpan], screen: Screen) -> Iterator[tuple[str, InlineSpan]]:
    for span in spans:
        text = span.text
        if not screen.has_colour:
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


def _styled(text: str, span: InlineSpan, screen: Screen) -> str:
    styles = ["cyan" if mark == "code" else mark for mark in span.marks]
    return screen.paint(text, *styles, "underline" if span.url else "") if styles or span.url else text


def diff_line(line: str, screen: Screen) -> str:
    """A line of a diff in its colour."""
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
    return screen.paint(line, style)
