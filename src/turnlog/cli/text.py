"""Text for a terminal. What comes out of a log is untrusted: nothing in it may move the cursor or deceive the eye."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime

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


def screen_width() -> int | None:
    """How wide the output may be: `COLUMNS`, or the terminal. None where neither says: then nothing is cut."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return None


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Lines of a table in columns; those numbered in `right` are aligned to the right. The last one is cut to fit."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    room = screen_width()
    if room is not None:
        widths[-1] = min(widths[-1], max(12, room - sum(widths[:-1]) - 2 * (len(widths) - 1)))
    lines: list[str] = []
    for row in [list(head), *cells]:
        parts: list[str] = []
        for index, (cell, columns) in enumerate(zip(row, widths, strict=True)):
            text = clip(cell, columns)
            padding = " " * (columns - width(text))
            parts.append(padding + text if index in right else text + padding)
        lines.append("  ".join(parts).rstrip())
    return lines


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


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 entry`, `2 entries`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
