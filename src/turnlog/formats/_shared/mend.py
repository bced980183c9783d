"""A conversation that went on elsewhere, so that the agent it goes to can resume it."""

from __future__ import annotations

from turnlog.formats._shared.tally import Tally, is_of
from turnlog.log.block import ToolResult
from turnlog.log.context import repair
from turnlog.log.entry import Message


def mended(messages: list[Message], agent: str, tally: Tally) -> list[Message]:
    """Every call with its result from where others went on; what the agent wrote itself before stays as it is."""
    index = next((i for i, message in enumerate(messages) if not is_of(message, agent)), len(messages))
    if index == len(messages):
        return messages
    for start in range(index - 1, -1, -1):
        if messages[start].role != "tool":
            # Its calls may be answered further on, or never.
            index = start
            break
    rest = repair(messages[index:])
    kept = {id(block) for message in rest for block in message.blocks}
    said = [block for message in messages[index:] for block in message.blocks if isinstance(block, ToolResult)]
    tally.add("tool result without its call", "", sum(id(block) not in kept for block in said))
    return messages[:index] + rest
