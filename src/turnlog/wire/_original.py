"""The ids and tool names of a context, by the names they are sent under."""

from __future__ import annotations

from collections.abc import Iterable

from turnlog.log.block import ToolCall
from turnlog.log.context import Context
from turnlog.wire._name import wire_name
from turnlog.wire._tool import client_names


def original_names(context: Context | None, *, limits: Iterable[int]) -> dict[str, str]:
    """The original of each id and tool name in a context, by the name it is sent under.

    A response that repeats one is understood by it.
    """
    originals: dict[str, str] = {}
    if context is None:
        return originals
    seen: dict[str, int] = {}
    calls = [block for message in context for block in message.blocks if isinstance(block, ToolCall)]
    for limit in limits:
        for call in calls:
            seen[call.id] = seen.get(call.id, 0) + 1
            originals[wire_name(call.id, limit=limit, nth=seen[call.id])] = call.id
        for name in [call.name for call in calls] + client_names(context.tools):
            originals[wire_name(name, limit=limit, lettered=True)] = name
        seen.clear()
    return originals
