"""What tools did, entry by entry: calls, errors, and how long they took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import MOST
from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.entry import Custom, Message

if TYPE_CHECKING:
    from turnlog.log.entry import Entry

OpenCalls = dict[str, tuple[str, int]]
"""The calls that have no result yet, by their ids: the tool of each, and when it was called."""
MAX_CALLS = 1000
"""With more open calls than this, results are no longer expected."""
_LONGEST_MS = 3_600_000
"""The maximum counted between a call and its result: in a longer wait, the machine or the user slept."""


def open_calls(entry: Entry, calls: OpenCalls, at: int) -> None:
    """Add the calls of an entry to `calls`."""
    if type(entry) is Message or type(entry) is Custom:
        for block in entry.blocks:
            if type(block) is ToolCall:
                if len(calls) > MAX_CALLS:
                    calls.clear()
                calls[block.id] = block.name, at


def close_calls(entry: Entry, calls: OpenCalls) -> None:
    """Remove the calls that an entry answers from `calls`."""
    if type(entry) is Message or type(entry) is Custom:
        for block in entry.blocks:
            if type(block) is ToolResult:
                calls.pop(block.call, None)


def tools_used(entry: Entry, calls: OpenCalls, at: int) -> dict[str, tuple[int, int, int]]:
    """Calls, errors and milliseconds of each tool in an entry. A tool that does not report its duration is timed."""
    sums: dict[str, tuple[int, int, int]] = {}
    if type(entry) is not Message:
        return sums
    for block in entry.blocks:
        if type(block) is ToolCall:
            count, errors, took = sums.get(block.name, (0, 0, 0))
            sums[block.name] = count + 1, errors, took
        elif type(block) is ToolResult:
            name, since = calls.get(block.call, (block.name or "", at))
            waited = block.duration_ms if block.duration_ms is not None else min(at - since, _LONGEST_MS)
            count, errors, took = sums.get(name, (0, 0, 0))
            sums[name] = count, errors + block.is_error, min(took + max(waited, 0), MOST)
    return sums
