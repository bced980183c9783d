"""Times as people read them: how long ago, or what the clock of this place said."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

_STEPS = ((60, 1, "s"), (3_600, 60, "m"), (86_400, 3_600, "h"), (14 * 86_400, 86_400, "d"), (60 * 86_400, 604_800, "w"))


def moment(at: datetime | None) -> str:
    """A time as this place tells it."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def ago(ms: int | None, now: float) -> str:
    """How long ago a time in milliseconds was: `now`, `5m ago`, `3d ago`."""
    if ms is None:
        return ""
    past = now - ms / 1000
    if past < 10:
        return "now"  # also what comes out of a clock that is ahead of ours
    for below, unit, name in _STEPS:
        if past < below:
            return f"{int(past // unit)}{name} ago"
    months = int(past // (30.44 * 86_400))
    return f"{months}mo ago" if months < 24 else f"{months // 12}y ago"


def clock_times(times: Sequence[int | None]) -> list[str]:
    """Times in milliseconds as this place tells them: `2026-11-15 14:02`. Quick for thousands of them in order."""
    clock = [f"{hour:02}:{minute:02}" for hour in range(24) for minute in range(60)]
    told: list[str] = []
    text, midnight, first, end = "", 0, 0, 0
    for ms in times:
        if ms is None:
            told.append("")
            continue
        minute = ms // 60_000
        if not first <= minute < end:
            text, midnight, first, end = _day(minute)
        told.append(text + clock[minute - midnight])
    return told


def _day(minute: int) -> tuple[str, int, int, int]:
    """The day around a minute since 1970: its name, when it began, and between which minutes that holds."""
    at = time.localtime(minute * 60)
    midnight = minute - at.tm_hour * 60 - at.tm_min
    text, end = time.strftime("%Y-%m-%d ", at), midnight + 1_440
    edges = (time.localtime(edge * 60) for edge in (midnight, end - 1))
    if [(edge.tm_yday, edge.tm_gmtoff) for edge in edges] == [(at.tm_yday, at.tm_gmtoff)] * 2:
        return text, midnight, midnight, end
    return text, midnight, minute, minute + 1  # clocks are put forward or back on that day
