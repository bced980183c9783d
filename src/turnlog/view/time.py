"""Times as viewers show them; empty where none is known."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

_STEPS = ((60, 1, "s"), (3_600, 60, "m"), (86_400, 3_600, "h"), (14 * 86_400, 86_400, "d"), (60 * 86_400, 604_800, "w"))


def minute(at: datetime | None) -> str:
    """A time to the minute, in its own time zone."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M")


def second(at: datetime | None) -> str:
    """A time to the second, in its own time zone."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def local_minute(at: datetime | None) -> str:
    """A time to the minute, in the time zone of this machine."""
    return minute(_local(at))


def local_second(at: datetime | None) -> str:
    """A time to the second, in the time zone of this machine."""
    return second(_local(at))


def _local(at: datetime | None) -> datetime | None:
    try:
        return None if at is None else at.astimezone()
    except OverflowError:  # it is at the end of the calendar, and the time here is ahead
        return at


def ago(ms: int | None, now: float) -> str:
    """How long ago a time in milliseconds was: `now`, `5m ago`, `3d ago`; `in 2h` where a clock is ahead of ours."""
    if ms is None:
        return ""
    past = now - ms / 1000
    if abs(past) < 10:
        return "now"
    return f"{_span(past)} ago" if past > 0 else f"in {_span(-past)}"


def _span(seconds: float) -> str:
    for below, unit, name in _STEPS:
        if seconds < below:
            return f"{int(seconds // unit)}{name}"
    months = int(seconds // (30.44 * 86_400))
    return f"{months}mo" if months < 24 else f"{months // 12}y"
