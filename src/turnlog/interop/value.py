"""Lenient access to foreign JSON: a value of the wrong type counts as missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from turnlog.log.usage import Usage

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
"""The times that a log takes."""
_LATEST_MS = 253_402_300_799_999


def fields(value: Any) -> dict[str, Any]:
    """An object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def items(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; empty for anything else."""
    if not isinstance(value, list):
        return []
    if len(value) == 1 and type(value[0]) is dict:  # pyright: ignore[reportUnknownArgumentType]
        return [value[0]]  # pyright: ignore[reportUnknownVariableType]
    return [item for item in value if isinstance(item, dict)]  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    """The values in a list; empty for anything else."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def in_order(value: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The same object with these fields first, in this order."""
    return {**{name: value[name] for name in names if name in value}, **value}


def as_counter(value: Any) -> int | None:
    """A counter, unchanged; None for anything else. Sums of a thousand of them fit into 64 bits."""
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def mistyped(record: dict[str, Any], types: Mapping[str, type]) -> Iterator[str]:
    """The fields whose value is not of their type, in words: None is of any type, and an integer is a float, too.

    An integer of more than 53 bits is of no type: nothing is counted or dated so.
    """
    for name, kind in types.items():
        value = record.get(name)
        is_so = isinstance(value, (int, float) if kind is float else kind) and (kind is bool or type(value) is not bool)
        if value is not None and not (is_so and (kind is not int or abs(value) < 1 << 53)):
            yield f"{name} is {value!r:.40}"


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def moment(value: Any) -> datetime | None:
    """A time: ISO 8601, or seconds or milliseconds since 1970, or a decoded one. None for one that no log takes."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            if time.tzinfo is None:
                time = time.replace(tzinfo=UTC)
            return time if "1001" < value < "9999" or _EARLIEST <= time <= _LATEST else None
        if isinstance(value, datetime):
            return value if _EARLIEST <= value <= _LATEST else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def local_moment(value: str) -> datetime | None:
    """A time without a zone, by the clock of this machine. None for one that no log takes."""
    try:
        time = moment(value)
        return time and moment(time.replace(tzinfo=None).astimezone())
    except (ValueError, OverflowError):
        return None


def from_ms(value: Any) -> datetime | None:
    """The time so many milliseconds after the beginning of 1970; None for one that no log takes."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LATEST_MS:
        return None
    return EPOCH + timedelta(milliseconds=int(value))


def token_count(value: Any, *path: str) -> int:
    """A number of tokens, or the one at that path; 0 for anything that is none."""
    for name in path:
        value = fields(value).get(name)
    if type(value) is int:
        return value if 0 < value < 1 << 53 else 0
    return int(value) if isinstance(value, float) and 0 < value < 1 << 53 else 0


def usage_in(
    raw: dict[str, Any],
    input: str,
    output: str,
    cache_read: str = "",
    cache_write: str = "",
    thoughts: str = "",
    cost: str = "",
    *,
    input_includes_cache: bool = False,
) -> Usage:
    """The usage in an object, by the names of its fields; "" is a field that it does not have.

    `input_includes_cache`: what a cache answered or took is counted as input, too.
    """
    cached, written = token_count(raw.get(cache_read)), token_count(raw.get(cache_write))
    fresh = token_count(raw.get(input))
    return Usage(
        input_tokens=max(0, fresh - cached - written) if input_includes_cache else fresh,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=token_count(raw.get(output)),
        reasoning_tokens=token_count(raw.get(thoughts)),
        cost_micros=micros(raw.get(cost)),
    )


def as_int(value: Any) -> int | None:
    """A whole number, unchanged; None for anything else."""
    return value if type(value) is int else None


def as_int64(value: Any) -> int | None:
    """A whole number of 64 bits, unchanged; None for anything else."""
    return value if type(value) is int and abs(value) < 1 << 63 else None


def as_float(value: Any) -> float | None:
    """A number as a float; None for anything else, and for what no float holds."""
    return float(value) if type(value) in (int, float) and abs(value) < 1 << 1023 else None


def micros(dollars: Any) -> int | None:
    """An amount in millionths of a dollar; None for zero, and for anything that is no amount."""
    return round(dollars * 1_000_000) if type(dollars) in (int, float) and 0 < dollars < 1e9 else None


def json_text(value: Any) -> str:
    """JSON on one line, without spaces."""
    return msgspec.json.encode(value).decode()


def without_none(facts: dict[str, Any]) -> dict[str, Any]:
    """The fields that are not None."""
    return {key: value for key, value in facts.items() if value is not None}


def branches_in(*values: Any) -> tuple[str, ...]:
    """The git branches among these values, without placeholders such as `HEAD`."""
    return tuple(value for value in values if isinstance(value, str) and value not in ("", "HEAD"))
