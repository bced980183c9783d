"""A session to look at: what commands that only read ask of it besides."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import fields

from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.entry import Message
from turnlog.log.usage import Usage
from turnlog.session.readable import Readable


class Totals(Struct, frozen=True):
    """How much is in a session, whichever branch it is on. Subagents and what a fork inherited count where they are."""

    messages: int
    """Of user and assistant."""
    tool_calls: int
    tool_results: int
    usage: dict[str, int | None]
    """Every field of `Usage`."""


class Look(Readable):
    """A session to read from, however large it is."""

    def each_message(self) -> Iterator[Message]:
        """`messages()`, one by one: a conversation may be larger than memory."""
        path = self._history.path(self.head)
        seqs = [node.seq for node in path if isinstance(node, Message)]
        for entry in self._history.forward():
            if seqs and entry.seq == seqs[-1] and isinstance(entry, Message):
                seqs.pop()
                yield self._history.whole(entry)

    def totals(self) -> Totals:
        """Count what this session's own log has; reads all of it."""
        messages = calls = results = 0
        for entry in self._history.forward(self._history.inherited_to):
            if isinstance(entry, Message) and not self._history.is_repeat(entry):
                messages += entry.role in ("user", "assistant")
                calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
                results += sum(isinstance(block, ToolResult) for block in entry.blocks)
        own = self._state.own
        return Totals(messages, calls, results, {field.name: getattr(own, field.name) for field in fields(Usage)})
