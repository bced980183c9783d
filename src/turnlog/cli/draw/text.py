"""Text for a terminal: cut, aligned, coloured. What comes out of a log is untrusted: `view.visible` makes it safe."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TextIO

from turnlog.view.number import ago as ago
from turnlog.view.number import count as count
from turnlog.view.number import size as size
from turnlog.view.visible import (
    UNSEEN,
    beginning,
    clip,
    ending,
    in_lines,
    is_safe,
    odd_parts,
    one_line,
    path_line,
    safe,
    width,
)

__all__ = ["beginning", "clip", "count", "ending", "one_line", "safe", "size", "width"]

_UNSEEN = f"[{UNSEEN}]"
_ASCII = bytes(range(32, 127))


def safe_json(text: bytes) -> bytes:
    """The same JSON, with what could drive a terminal or deceive the eye written as `\\u009b`."""
    if b"\x7f" not in text and (text.isascii() or not any(map(re.compile(_UNSEEN).search, odd_parts(text)))):
        return text
    return re.sub(_UNSEEN, _json_escape, text.decode()).encode()


def _json_escape(match: re.Match[str]) -> str:
    data = match.group().encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def clip_path(text: str, columns: int) -> str:
    """A path truncated to this many columns, at its beginning: the end is more useful."""
    if width(text) <= columns:
        return text
    lead = clip(text, max(2, columns // 4))
    return lead + ending(text, columns - width(lead))


def screen_width() -> int | None:
    """How wide the output may be: `COLUMNS`, or the terminal. None where neither says: then nothing is cut."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80  # 0: nobody told it how wide it is
    except (OSError, ValueError):
        return None


def tell(text: str) -> None:
    """A line on stderr for people: made safe, and on a terminal broken between words."""
    for line in told_lines(text):
        print(line, file=sys.stderr)


def told_lines(text: str) -> list[str]:
    """The lines that `tell` prints."""
    line = one_line(text)
    room = screen_width() if sys.stderr.isatty() else None
    if room is None or width(line) <= room:
        return [line]
    return in_lines(line, max(room, 20))


def plain(text: str) -> str:
    """The text on one line, made safe; quick for what is plain already."""
    return text if text.isascii() and text.isprintable() and "  " not in text else one_line(text)


def all_plain(texts: list[str]) -> list[str]:
    """The same for many: one look at all of them is often enough."""
    joined = "|".join(texts)
    odd = joined.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    is_plain = not odd or (b"\n" not in odd and b"\t" not in odd and is_safe(joined))
    return texts if is_plain and "  " not in joined else [plain(text) for text in texts]


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


# ── times ─────────────────────────────────────────────────────────────────────────────────────────


def moment(at: datetime | None) -> str:
    """A time as this place tells it."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def clock_times(times: Sequence[int | None]) -> list[str]:
    """Times in milliseconds as this place tells them: `2026-11-15 14:02`. Quick for thousands of them in order."""
    clock: dict[int, str] = {}
    texts: list[str] = []
    text, midnight, first, end = "", 0, 0, 0
    for ms in times:
        if ms is None:
            texts.append("")
            continue
        minute = ms // 60_000
        if not first <= minute < end:
            text, midnight, first, end = _day(minute)
        since = minute - midnight
        if since not in clock:
            clock[since] = f"{since // 60:02}:{since % 60:02}"
        texts.append(text + clock[since])
    return texts


def _day(minute: int) -> tuple[str, int, int, int]:
    """The day around a minute since 1970: its name, when it began, and between which minutes that holds."""
    at = time.localtime(minute * 60)
    midnight = minute - at.tm_hour * 60 - at.tm_min
    text, end = time.strftime("%Y-%m-%d ", at), midnight + 1_440
    edges = (time.localtime(edge * 60) for edge in (midnight, end - 1))
    if [(edge.tm_yday, edge.tm_gmtoff) for edge in edges] == [(at.tm_yday, at.tm_gmtoff)] * 2:
        return text, midnight, midnight, end
    return text, midnight, minute, minute + 1  # clocks are put forward or back on that day


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────


def path_of(path: bytes) -> str:
    """A path for people; bytes that are not Unicode as `\\xe9`."""
    return path_line(path.decode("utf-8", "backslashreplace"))
