"""The times that `since:` and `until:` mean. Pure."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, tzinfo

from turnlog.errors import Invalid
from turnlog.log.startup import pattern

_AGO = pattern(r"(\d{1,6})(min|m|h|d|w)")
_DAY = pattern(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?))?)?")
_TIME = pattern(r"\d{4}-\d\d-\d\d[T ]\d\d")
_CLOCK = pattern(r"\d\d?:\d\d")
_UNITS = {"min": "minutes", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def moment(value: str, *, now: datetime, zone: tzinfo | None = None, is_end: bool = False) -> datetime:
    """The time that a value of `since:` or `until:` means, in a time zone (default: the local one).

    A day, a month or a year is meant as a whole: `until` ends with its end.
    """
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        if value == "now":
            return now
        if value in ("today", "yesterday"):
            today = now.astimezone(zone).date()
            day = today if value == "today" else today - timedelta(days=1)
            return _midnight(day + timedelta(days=1) if is_end else day, zone)
        if _CLOCK.fullmatch(value):
            hour, minute = map(int, value.split(":"))
            return _local(datetime.combine(now.astimezone(zone).date(), time(hour, minute)), zone)
        whole = _DAY.fullmatch(value)
        if whole:
            return _midnight(_edge(whole, is_end), zone)
        if not _TIME.match(value):
            raise ValueError
        at = datetime.fromisoformat(value)
        return at if at.tzinfo else _local(at, zone)
    except (ValueError, OverflowError, OSError):
        hint = "7d, 2h, 30min, today, yesterday, 2026-11, 2026-11-01, 09:30 or 2026-11-01T09:30"
        raise Invalid(f"{value!r:.80} is not a time", hint=hint) from None


def _edge(whole: re.Match[str], is_end: bool) -> date:
    year, month, day = int(whole[1]), int(whole[2] or 1), int(whole[3] or 1)
    first = date(year, month, day)
    if not is_end:
        return first
    if whole[3]:
        return first + timedelta(days=1)
    if whole[2]:
        return date(year + month // 12, month % 12 + 1, 1)
    return date(year + 1, 1, 1)


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return _local(datetime.combine(day, time()), zone)


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.replace(tzinfo=zone) if zone else naive.astimezone()
