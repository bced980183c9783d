"""What tools did, entry by entry: calls, errors, and how long they took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.entry import Message

if TYPE_CHECKING:
    from turnlog.log.entry import Entry

_CALLS = 1000
_LONGEST_MS = 3_600_000
"""A longer wait between a call and its result was somebody who slept."""


class ToolTimes:
    """Remembers the calls that have no result yet."""

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, int]] = {}

    def take(self, entry: Entry, at: int) -> dict[str, tuple[int, int, int]]:
        """Of each tool in an entry: calls, errors, milliseconds. A tool that does not say how long it took is timed."""
        times: dict[str, tuple[int, int, int]] = {}
        if type(entry) is not Message:
            return times
        for block in entry.blocks:
            if type(block) is ToolCall:
                if len(self._calls) > _CALLS:
                    self._calls.clear()
                self._calls[block.id] = block.name, at
                calls, errors, took = times.get(block.name, (0, 0, 0))
                times[block.name] = calls + 1, errors, took
            elif type(block) is ToolResult:
                name, since = self._calls.pop(block.call, (block.name or "", at))
                waited = block.duration_ms if block.duration_ms is not None else at - since
                calls, errors, took = times.get(name, (0, 0, 0))
                times[name] = calls, errors + block.is_error, took + min(max(waited, 0), _LONGEST_MS)
        return times
