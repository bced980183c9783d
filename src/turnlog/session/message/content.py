"""What a caller passes as content, checked: blocks, lists, the id of a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Text, ToolCall

Content = str | Sequence[AnyBlock]
JsonValue = dict[str, Any] | list[Any] | tuple[Any, ...] | int | float | bool | None
_T = TypeVar("_T")


def as_list(items: Iterable[_T]) -> list[_T]:
    """The items of a caller as a list; `Invalid` if they are none. Text is one item, and not a list of letters."""
    if isinstance(items, (str, bytes)):
        raise Invalid(f"a list is needed, not {items!r:.80}", hint=f"[{items!r:.40}]")
    try:
        return list(items)
    except TypeError:
        raise Invalid(f"a list is needed, not {items!r:.80}") from None


def blocks_of(content: Content) -> list[AnyBlock]:
    """Content as blocks."""
    return [Text(content)] if isinstance(content, str) else as_list(content)


def id_of(call: str | ToolCall) -> str:
    """The id of a tool call."""
    return call.id if isinstance(call, ToolCall) else call
