"""The terminal that output may go to: how wide and high it is, and whether it shows colours. Imports nothing heavy."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_COLOURS = {
    "red": "31", "green": "32", "yellow": "33", "purple": "35", "cyan": "36", "bold": "1", "dim": "2", "match": "1;33",
}  # fmt: skip


def screen_width() -> int | None:
    """How wide the output may be: `COLUMNS`, or the terminal. None where neither says: then nothing is cut."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and len(chosen) < 10 and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80  # 0: nobody told it how wide it is
    except (OSError, ValueError):
        return None


def screen_rows(*, below: int, least: int) -> int | None:
    """How many rows fit on the terminal with this many lines below them. None if the output is for no terminal."""
    return max(least, os.get_terminal_size(sys.stdout.fileno()).lines - below) if sys.stdout.isatty() else None


def has_colour(stream: TextIO) -> bool:
    """Whether to use colours there: a terminal that can, and nobody said `NO_COLOR`."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str, colour: str | None, stream: TextIO) -> str:
    """The text in that colour, where the stream shows colours."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if colour and text and has_colour(stream) else text
