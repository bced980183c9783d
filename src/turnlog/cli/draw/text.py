"""Text for a terminal: cut, aligned, coloured. What comes out of a log is untrusted: `view.visible` makes it safe."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TextIO

from turnlog.view.visible import UNSEEN, clip, one_line, safe, width

_UNSEEN = re.compile(f"[{UNSEEN}]")
_SHELL = re.compile(r"[\x00-\x1f]")


def safe_json(text: bytes) -> bytes:
    """The same JSON, with what could drive a terminal or deceive the eye written as `\\u009b`."""
    if text.isascii() and b"\x7f" not in text:
        return text
    return _UNSEEN.sub(_json_escape, text.decode()).encode()


def _json_escape(match: re.Match[str]) -> str:
    data = match.group().encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def quoted(word: str) -> str:
    """A word for a shell, exactly; what a terminal would not show as it is stands as `$'\\033'`."""
    import shlex  # takes longer to import than many a command to answer

    if safe(word) == word and not _SHELL.search(word):
        return shlex.quote(word)
    escaped = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f"$'{''.join(escaped)}'"


def clip_path(text: str, columns: int) -> str:
    """A path in so many columns: its end says more than its beginning."""
    if width(text) <= columns:
        return text
    lead = clip(text, max(2, columns // 4))
    left = columns - width(lead)
    tail = ""
    for character in reversed(text):
        if width(tail) + width(character) > left:
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
    cells = [[_whole(cell) if i == paths else one_line(cell) for i, cell in enumerate(row)] for row in rows]
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

_COLOURS = {
    "red": "31", "green": "32", "yellow": "33", "purple": "35", "cyan": "36", "bold": "1", "dim": "2", "match": "1;33",
}  # fmt: skip


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


def _whole(text: str) -> str:
    """The text on one line, made safe. In a path blanks count: they stay as they are."""
    return safe(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def path_of(path: bytes) -> str:
    """A path for people; bytes that are not Unicode as `\\xe9`."""
    return _whole(path.decode("utf-8", "backslashreplace"))
