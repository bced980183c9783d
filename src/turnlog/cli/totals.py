"""How much is in a session: its own part of it, whichever branch it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import fields

from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.entry import Message, Start
from turnlog.log.usage import Usage

if TYPE_CHECKING:
    from turnlog.session.readable import Readable


class Totals(Struct, frozen=True):
    """Subagents and what a fork inherited are counted in their own sessions."""

    messages: int
    """Of user and assistant."""
    tool_calls: int
    tool_results: int
    usage: dict[str, int | None]
    """Every field of `Usage`."""


def totals_of(found: Readable) -> Totals:
    """Count; reads all of the log."""
    messages = calls = results = 0
    for entry in found.entries():
        if isinstance(entry, Start) and entry.id == found.id:
            messages = calls = results = 0  # before its first line is what it inherited
        elif isinstance(entry, Message):
            messages += entry.role in ("user", "assistant")
            calls += sum(isinstance(block, ToolCall) for block in entry.blocks)
            results += sum(isinstance(block, ToolResult) for block in entry.blocks)
    own = found.usage().own
    return Totals(messages, calls, results, {field.name: getattr(own, field.name) for field in fields(Usage)})
