"""JSON of other programs, decoded strictly."""

from __future__ import annotations

from typing import Any

import msgspec

MAX_DEPTH = 190
"""A little less than the log takes, so that whatever was read can be stored."""


def decode(data: bytes) -> Any:
    """The value of a JSON text. Raises ValueError, and nothing else, for any other text.

    Of duplicate keys the last counts. Lone surrogates, NaN, numbers beyond a float and deep nesting are refused.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deep(value):
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    return value


def decoded(value: Any) -> Any:
    """The value of a JSON text inside another value; None if it is no JSON."""
    if not isinstance(value, (str, bytes)):
        return None
    try:
        return decode(value.encode() if isinstance(value, str) else value)
    except (ValueError, UnicodeEncodeError):
        return None


def json_or_text(value: Any) -> Any:
    """The value of a JSON text inside another value; what is no JSON stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value.encode())
    except (ValueError, UnicodeEncodeError):
        return value


def is_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether it is nested more than so many levels deep."""
    if type(value) is dict:
        for child in value.values():  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            if type(child) is dict or type(child) is list:  # pyright: ignore[reportUnknownArgumentType]
                break
        else:
            return False  # as it mostly is
    elif type(value) is not list:
        return False
    level: list[Any] = [value]
    for _ in range(limit):
        if not level:
            return False
        level = _children(level[0]) if len(level) == 1 else [child for item in level for child in _children(item)]
    return bool(level)


def _children(value: Any) -> list[Any]:
    inner: Any = value
    if type(value) is dict:
        inner = value.values()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return [child for child in inner if type(child) is dict or type(child) is list]
