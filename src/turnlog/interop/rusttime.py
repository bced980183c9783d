"""Points in time and durations as Rust programs write them: seconds, and nanoseconds beside them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from turnlog.interop.value import EPOCH, as_list, fields, moment

_POINT, _DURATION = ("secs_since_epoch", "nanos_since_epoch"), ("secs", "nanos")
RustTime = list[int]
"""Seconds and nanoseconds; a time in a log has only milliseconds."""


def rust_time_in(raw: Any) -> RustTime | None:
    """A point in time or a duration: an object, or a list of the same two numbers."""
    pair = as_list(raw) or (list(fields(raw).values()) if tuple(fields(raw)) in (_POINT, _DURATION) else [])
    if len(pair) != 2 or not all(type(number) is int and 0 <= number < 1 << 62 for number in pair):
        return None
    more, nanos = divmod(pair[1], 1_000_000_000)
    return [pair[0] + more, nanos]


def time_record(time: Any, *, is_duration: bool = False) -> dict[str, int]:
    """The object for a point in time, or for a duration."""
    return dict(zip(_DURATION if is_duration else _POINT, rust_time_in(time) or (0, 0), strict=True))


def datetime_of(time: RustTime) -> datetime | None:
    """A point in time, to the microsecond; None for one that no log takes."""
    try:
        return moment(EPOCH + timedelta(seconds=time[0], microseconds=time[1] // 1000))
    except OverflowError:
        return None


def rust_time_of(at: datetime) -> RustTime:
    """A point in time for Rust, which knows none before 1970."""
    micros = max(0, (at - EPOCH) // timedelta(microseconds=1))
    return [micros // 1_000_000, micros % 1_000_000 * 1000]
