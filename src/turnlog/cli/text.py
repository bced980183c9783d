"""Text for a terminal. What comes out of a log is untrusted: nothing in it may move the cursor or deceive the eye."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TextIO

_UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f"  # C0 but for tab and newline
    "\x7f-\x9f"  # DEL and C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # surrogates
    "]"
)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def safe(text: str) -> str:
    """The text with everything escaped that is not plainly visible. Lines and tabs stay."""
    return _UNSAFE.sub(_escaped, text)


def one_line(text: str) -> str:
    """The text on one line, made safe."""
    return safe(" ".join(text.split()) if "\n" in text or "\t" in text or "  " in text else text)


# ── width ─────────────────────────────────────────────────────────────────────────────────────────


def width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def clip(text: str, columns: int) -> str:
    """At most so many columns of a text, with an ellipsis where something was left out."""
    if len(text) <= columns and width(text) <= columns:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += _columns(character)
        if taken > columns - 1:
            return text[:index].rstrip() + "…"
    return text


def clip_path(text: str, columns: int) -> str:
    """A path in so many columns: its end says more than its beginning."""
    if width(text) <= columns:
        return text
    lead = clip(text, max(2, columns // 4))
    left = columns - width(lead)
    tail = ""
    for character in reversed(text):
        if width(tail) + _columns(character) > left:
            break
        tail = character + tail
    return lead + tail


def screen_width() -> int | None:
    """How wide the output may be: `COLUMNS`, or the terminal. None where neither says: then nothing is cut."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80  # 0: nobody told it how wide it is
    except (OSError, ValueError):
        return None


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Sequence[int] = (),
    paths: int | None = None,
    paint: Callable[[int, str, str], str] = lambda index, cell, padded: padded,
) -> list[str]:
    """Lines of a table in columns; those numbered in `right` are aligned to the right. The last one is cut to fit.

    Before that, the column numbered `paths` gives way, down to a half of the room. `paint` may colour a cell.
    """
    # Spaces in a path count: `path_of` has made it safe.
    cells = [[cell if i == paths else one_line(cell) for i, cell in enumerate(row)] for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    room = screen_width()
    if room is not None:
        room -= 2 * (len(widths) - 1)
        if paths is not None:
            widths[paths] = min(widths[paths], max(room // 2, room - sum(widths) + widths[paths], 16))
        widths[-1] = min(widths[-1], max(12, room - sum(widths[:-1])))
    lines: list[str] = []
    for number, row in enumerate([list(head), *cells]):
        parts: list[str] = []
        for index, (cell, columns) in enumerate(zip(row, widths, strict=True)):
            text = clip_path(cell, columns) if index == paths else clip(cell, columns)
            padding = " " * (columns - width(text)) if index < len(row) - 1 or index in right else ""
            padded = padding + text if index in right else text + padding
            parts.append(paint(index, cell, padded) if number else padded)
        lines.append("  ".join(parts).rstrip())
    return lines


# ── colours ───────────────────────────────────────────────────────────────────────────────────────

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "purple": "35", "cyan": "36", "bold": "1", "dim": "2"}


def has_colour(stream: TextIO) -> bool:
    """Whether to use colours there: a terminal that can, and nobody said `NO_COLOR`."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str | None, stream: TextIO) -> str:
    """The text in that colour, where the stream shows colours."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if colour and text and has_colour(stream) else text


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def moment(at: datetime | None) -> str:
    """A time as this place tells it."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def size(count: int) -> str:
    """A number of bytes, short."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def path_of(path: bytes) -> str:
    """A path for people; bytes that are not Unicode as `\\xe9`."""
    return safe(path.decode("utf-8", "backslashreplace")).replace("\n", "\\x0a").replace("\t", "\\x09")


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
