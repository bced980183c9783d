"""What reading and writing a checkpoint of owlen share: its times, its keys, and how it looks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from turnlog.formats._shared.value import EPOCH, fields, listed

AGENT = "owlen"
COUNTS = ("total_messages", "total_tool_calls", "estimated_tokens")
_SECONDS = {"secs_since_epoch": "nanos_since_epoch", "secs": "nanos"}

Time = list[int]
"""Seconds and nanoseconds; a time of ours has only milliseconds."""


def time_of(raw: Any) -> Time | None:
    """A time or duration as Rust writes it: an object, or a list of the same two numbers."""
    pair = listed(raw)
    if not pair:
        said = fields(raw)
        name = next((name for name in _SECONDS if list(said) == [name, _SECONDS[name]]), None)
        pair = list(said.values()) if name else []
    if len(pair) != 2 or not all(type(number) is int and 0 <= number < 1 << 62 for number in pair):
        return None
    more, nanos = divmod(pair[1], 1_000_000_000)
    return [pair[0] + more, nanos]


def system_time(time: Time) -> dict[str, int]:
    """A point in time as Rust writes it."""
    return {"secs_since_epoch": time[0], "nanos_since_epoch": time[1]}


def duration(time: Time) -> dict[str, int]:
    """A length of time as Rust writes it."""
    return {"secs": time[0], "nanos": time[1]}


def moment(time: Time) -> datetime | None:
    """A point in time, as exactly as ours go."""
    try:
        return EPOCH + timedelta(seconds=time[0], microseconds=time[1] // 1000)
    except OverflowError:
        return None


def rust_time(at: datetime) -> Time:
    """A point in time for Rust, which knows none before 1970."""
    micros = max(0, (at - EPOCH) // timedelta(microseconds=1))
    return [micros // 1_000_000, micros % 1_000_000 * 1000]


def session_id(start: Time) -> str:
    """owlen gives sessions no id; when one began tells it from others."""
    return f"{start[0]}-{start[1]:09d}"


class Lists(Struct):
    """What was said by whom, and which tools were called: how owlen keeps a conversation."""

    prompts: list[str] = []
    responses: list[str] = []
    calls: list[dict[str, Any]] = []


def document(checkpoint: dict[str, Any], lists: Lists) -> dict[str, Any]:
    """A checkpoint as owlen writes it. `checkpoint` is the data of the note that stands for it."""
    stats = fields(checkpoint.get("stats"))
    return {
        "id": checkpoint.get("id"),
        "timestamp": system_time(_pair(checkpoint.get("timestamp"))),
        "stats": {
            "start_time": system_time(_pair(stats.get("start_time"))),
            "total_messages": stats.get("total_messages"),
            "total_tool_calls": stats.get("total_tool_calls"),
            "total_duration": duration(_pair(stats.get("total_duration"))),
            "estimated_tokens": stats.get("estimated_tokens"),
        },
        "user_prompts": lists.prompts,
        "assistant_responses": lists.responses,
        "tool_calls": lists.calls,
        "file_diffs": [
            {**fields(diff), "timestamp": system_time(_pair(fields(diff).get("timestamp")))}
            for diff in listed(checkpoint.get("diffs"))
        ],
    }


def _pair(value: Any) -> Time:
    return time_of(value) or [0, 0]
