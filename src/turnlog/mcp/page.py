"""Answers of limited size on the line: whole items only, as text for the model and the same as data for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from turnlog.errors import Invalid, TurnlogError
from turnlog.mcp.protocol import encoded
from turnlog.reader.part import numbered

SEARCH_BYTES, READING_BYTES = 4_000, 12_000
_FRAME = 100
"""The bytes around a result on the line, with an id of usual length."""
_FAR = 100_000
"""The largest number of items that a cursor may skip."""
_T = TypeVar("_T")


def result(text: str, data: dict[str, Any], *, is_error: bool = False) -> dict[str, Any]:
    """The result of a tool."""
    answer: dict[str, Any] = {"content": [{"type": "text", "text": text}], "structuredContent": data}
    return {**answer, "isError": True} if is_error else answer


def failed(error: TurnlogError) -> dict[str, Any]:
    """The result of a tool that failed; the model reads the error."""
    from turnlog.view.visible import one_line

    message, hint = one_line(error.message), one_line(error.hint or "")
    data = {"error": {"code": error.code, "message": message, "hint": hint or None}}
    return result(f"error: {message}" + (f"\nhint: {hint}" if hint else ""), data, is_error=True)


def fitted(items: Sequence[_T], make: Callable[[Sequence[_T]], dict[str, Any]], most: int) -> dict[str, Any]:
    """The result with as many of the first items as fit; with none if the first one does not fit."""
    answer = make(items)
    if _size(answer) <= most:
        return answer
    low, high = 0, len(items) - 1  # `low` fits, or is nothing
    while low < high:
        middle = (low + high + 1) // 2
        if _size(make(items[:middle])) <= most:
            low = middle
        else:
            high = middle - 1
    return make(items[:low])


def offset_of(cursor: str | None) -> int:
    """The number of items before the page of that cursor."""
    if cursor is None:
        return 0
    offset = numbered(cursor)
    if offset is None or offset > _FAR:
        raise Invalid(f"cursor: {cursor!r:.60} is not a cursor", hint="pass the cursor of the answer before")
    return offset


def minute(at: datetime | None) -> str:
    """A time, to the minute; empty if it is unknown."""
    return "" if at is None else at.strftime("%Y-%m-%dT%H:%MZ")


def room(answer: dict[str, Any], most: int) -> int:
    """The number of bytes that are left beside a result."""
    return most - _size(answer)


def _size(answer: dict[str, Any]) -> int:
    return len(encoded(answer)) + _FRAME
