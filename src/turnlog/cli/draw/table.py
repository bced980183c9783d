"""Tables: columns that fit the screen. Ten thousand rows are no reason to wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from turnlog.cli.draw.text import all_plain, clip_path
from turnlog.cli.frame.terminal import screen_width
from turnlog.view.visible import clip, path_line, width

_NARROW = 12
"""The last column of a plain table is not cut below this."""


_LITTLE = 6
"""Long cells up to this much wider still widen the column: a small overhang looks like a mistake."""


class Column:
    """A column of a table. Whatever its cells are made of, they are made safe here."""

    def __init__(
        self,
        head: str,
        cells: list[str],
        *,
        right: bool = False,
        least: int = 0,
        drop: int = 0,
        floor: int = 4,
        is_path: bool = False,
        is_loose: bool = False,
    ) -> None:
        self.head = head
        self.cells = [path_line(cell) for cell in cells] if is_path else all_plain(cells)
        self.right = right
        self.least = least
        """Down to how many columns it may be cut; 0 for what is never cut."""
        self.drop = drop
        """Left out where there is no room for it, the highest number first; 0 for what always stays."""
        self.floor = floor
        """How narrow it may get where even the least is too much."""
        self.cut = clip_path if is_path else clip
        self.is_path = is_path
        """Paths give way to the others, and keep their ends."""
        self.is_loose = is_loose
        """A few long cells do not make it wider for all: they move what stands behind them, in their own lines."""
        self.width = 0
        self.is_easy = False
        """Whether in all of its cells a character is a column of the screen."""

    def measure(self) -> None:
        """Set the width from the widest cell."""
        self.is_easy = "".join(self.cells).isascii()
        widths = sorted(map(len if self.is_easy else width, self.cells))
        few = max(1, len(widths) // 8) if self.is_loose and len(widths) > 1 else 0
        widest = widths[-1 - few] if widths else 0
        widest = max((cell for cell in widths[-few:] if few and cell <= widest + _LITTLE), default=widest)
        self.width = max(len(self.head), widest)


Paint = Callable[[Column, str], str]
"""Colours a padded cell of a column."""


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[int] = (),
    paths: int | None = None,
    paint: Callable[[str], str] | None = None,
) -> list[str]:
    """Lines of a table in columns; those numbered in `right` are aligned to the right. The last one is cut to fit.

    Before that, the column numbered `paths` gives way, down to a half of the room. `paint` colours the first column.
    """
    rows, last = list(rows), len(head) - 1
    room = (screen_width() or 0) - 2 * last
    others = sum(
        max(map(width, (name, *(row[index] for row in rows))))
        for index, name in enumerate(head[:last])
        if index != paths
    )
    half = max(16, min(room // 2, room - others - _NARROW))
    columns = [
        Column(
            name,
            list(cells),
            right=index in right,
            least=0 if index in right else _NARROW if index == last else half if index == paths else 0,
            floor=_NARROW,
            is_path=index == paths,
        )
        for index, (name, *cells) in enumerate(zip(head, *rows, strict=True))
    ]
    return grid(columns, paint=paint and (lambda column, text: paint(text) if column is columns[0] else text))


def grid(columns: Sequence[Column], *, paint: Paint | None = None, margin: int = 0) -> list[str]:
    """Lines of a table. It fits the screen: columns are left out, then cut, most of all the last one.

    As many columns as `margin` says are left free, for a caller who indents the lines.
    """
    drawn = list(columns)
    room = screen_width()
    room = None if room is None else room - margin
    is_ragged = not drawn[-1].right  # then nobody needs to know how wide the last one is, unless it has to be cut
    for column in drawn if room is not None or not is_ragged else drawn[:-1]:
        column.measure()
    if room is not None:
        _fit(drawn, room)
    *first, last = drawn
    is_ragged = not last.right
    lines = ["  ".join([*(_padded(c.head, c) for c in first), last.head if is_ragged else _padded(last.head, last)])]
    rows = zip(*(c.cells for c in drawn), strict=True)
    if paint is None and room is None and all(c.is_easy for c in (first if is_ragged else drawn)):
        form = "  ".join(f"%{'' if c.right else '-'}{c.width}s" for c in first)
        form += "  %s" if is_ragged else f"  %{last.width}s"
        return lines + [(form % row).rstrip() for row in rows]
    for row in rows:
        parts: list[str] = []
        over = 0
        for cell, column in zip(row, drawn, strict=True):
            if column.is_loose:
                over += max(0, width(cell) - column.width)
                text = cell
            else:
                text = cell if room is None else column.cut(cell, column.width - (over if column is last else 0))
            text = text if column is last and is_ragged else _padded(text, column)
            parts.append(paint(column, text) if paint is not None else text)
        lines.append("  ".join(parts).rstrip())
    return lines


def _padded(text: str, column: Column) -> str:
    padding = " " * (column.width - width(text))
    return padding + text if column.right else text + padding


def _fit(columns: list[Column], room: int) -> None:
    def taken() -> int:
        return sum(min(c.least or c.width, c.width) for c in columns) + 2 * (len(columns) - 1)

    while taken() > room and any(c.drop for c in columns):
        columns.remove(max(columns, key=lambda c: c.drop))
    spare = room - taken()
    for column in sorted(columns, key=lambda c: c.is_path):  # what may be cut gets what is left, the first ones first
        if column.least:
            least = min(column.least, column.width)
            column.width = min(column.width, least + max(0, spare))
            spare -= column.width - least
    for column in reversed(columns):  # a very narrow screen
        if spare < 0 and not column.right and (column.least or column is columns[-1]):  # no digit of a number is cut
            narrowest = min(max(column.floor, len(column.head)), column.width)
            narrower = max(narrowest, column.width + spare)
            spare += column.width - narrower
            column.width = narrower
