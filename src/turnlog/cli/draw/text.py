"""Text for a terminal: on one line, cut, told as a time. Logs are untrusted: `view.visible` makes their text safe."""

from __future__ import annotations

import time
from collections.abc import Sequence

from turnlog.view.visible import (
    clip,
    ending,
    is_safe,
    one_line,
    path_line,
    width,
)

_ASCII = bytes(range(32, 127))


def clip_path(text: str, columns: int) -> str:
    """A path truncated to this many columns, at its beginning: the end is more useful."""
    if width(text) <= columns:
        return text
    lead = clip(text, max(2, columns // 4))
    return lead + ending(text, columns - width(lead))


def plain(text: str) -> str:
    """The text on one line, made safe; quick for what is plain already."""
    return text if text.isascii() and text.isprintable() and "  " not in text else one_line(text)


def all_plain(texts: list[str]) -> list[str]:
    """Make many texts plain; fast if none needs a change."""
    joined = "|".join(texts)
    odd = joined.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    is_plain = not odd or (b"\n" not in odd and b"\t" not in odd and is_safe(joined))
    return texts if is_plain and "  " not in joined else [plain(text) for text in texts]


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


def path_of(path: bytes) -> str:
    """A path for people; bytes that are not Unicode as `\\xe9`."""
    return path_line(path.decode("utf-8", "backslashreplace"))
