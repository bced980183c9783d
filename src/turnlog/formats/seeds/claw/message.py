"""Messages of ours as claw's records: what reading checks against and writing writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from turnlog.formats._shared.blocks import original
from turnlog.formats._shared.tally import Tally, stand_in
from turnlog.interop.json import decoded
from turnlog.interop.rust import compact
from turnlog.interop.value import as_list, fields
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

NAME = "claw"
UPDATED = "claw.updated_at_ms"
EARLY = "early"
"""In the origin of a message: which of its thoughts are of a version that called their field `text`."""
COUNTERS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
MAX_COUNT = (1 << 32) - 1


def input_of(text: str) -> Any:
    """A tool's input, which claw keeps as text: as JSON where it is an object or a list, and as it is otherwise."""
    value = decoded(text.encode())
    return cast("Any", value) if isinstance(value, (dict, list)) else text


def block_record(block: AnyBlock, tally: Tally, names: Mapping[str, str]) -> dict[str, Any]:
    """One block; what claw has no word for becomes text."""
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Thinking):
        signature = fields(block.data).get("signature")
        record: dict[str, Any] = {"type": "thinking", "thinking": block.text}
        if isinstance(signature, str):
            record["signature"] = signature
        elif block.data is not None:
            tally.add("sealed reasoning", "its readable part")
        return record
    if isinstance(block, ToolCall) and block.by is None:
        given = block.input if isinstance(block.input, str) else compact(block.input).decode()
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
    if isinstance(block, ToolResult):
        name, output = block.name or names.get(block.call, "tool"), tally.result(block.content)
        result = {"type": "tool_result", "tool_use_id": block.call, "tool_name": name}
        return {**result, "output": output, "is_error": block.is_error}
    what = "provider's tool call" if isinstance(block, ToolCall) else str(block.__struct_config__.tag)
    tally.add(block.kind if isinstance(block, UnknownBlock) else what, "a text that says so")
    return {"type": "text", "text": stand_in(block)}


def plain_record(message: Message, tally: Tally) -> dict[str, Any]:
    """The record of a message that was claw's, from the fields of the message alone."""
    blocks = [
        original(NAME, block) if isinstance(block, UnknownBlock) else block_record(block, tally, {})
        for block in message.blocks
    ]
    for index in as_list(fields(message.origin).get(EARLY)):
        if index < len(blocks) and "thinking" in fields(blocks[index]):
            blocks[index]["text"] = blocks[index].pop("thinking")
    return message_record(message.role, blocks, message.usage, tally)


def message_record(role: str, blocks: list[Any], usage: Usage | None, tally: Tally) -> dict[str, Any]:
    """The record of a message with these blocks."""
    message: dict[str, Any] = {"role": role, "blocks": blocks}
    if usage is not None:
        written = usage.cache_write_tokens + usage.cache_write_1h_tokens
        counts = (usage.input_tokens, usage.cache_read_tokens, written, usage.output_tokens)
        tally.add("tokens beyond 32 bits", str(MAX_COUNT), sum(count > MAX_COUNT for count in counts))
        message["usage"] = {name: min(count, MAX_COUNT) for name, count in zip(COUNTERS, counts, strict=True)}
    return {"type": "message", "message": message}
