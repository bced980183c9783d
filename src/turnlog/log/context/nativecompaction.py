"""A provider's own compaction: a block that it accepts in place of everything that came before.

It is a `Thinking` block of that provider whose `data["compaction"]` holds its exact output. `data["seen"]` is the id of
the head of the conversation that it answers; without that id, it stands for everything before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec.structs import replace

from turnlog.log.block import Block, Thinking, ToolResult, calls_in
from turnlog.log.entry import Message
from turnlog.log.startup import NamedTuple

Stands = Callable[[Thinking, Message], "int | None"]
"""Returns the last `seq` that the compaction in a message stands for; None if it is not valid."""


class NativeCompaction(NamedTuple):
    """The place of a compaction, and how far it reaches."""

    message: int
    """The position of the message that it is in."""
    block: int
    last: int
    """The last `seq` that it stands for."""


def compacted(block: Block) -> list[dict[str, Any]]:
    """Return the provider's compaction in a block; empty for any other block."""
    data = block.data if isinstance(block, Thinking) else None
    compaction: Any = cast("dict[str, Any]", data).get("compaction") if isinstance(data, dict) else None
    return cast("list[dict[str, Any]]", compaction) if isinstance(compaction, list) else []


def answered_head(block: Thinking) -> str | None:
    """Return the id of the head of the conversation that a compaction answers; None if it was not recorded."""
    return cast("dict[str, str | None]", block.data).get("seen")


def note_answered_head(message: Message, head: str | None) -> Message:
    """Record in every compaction of a message which head it answers. Modifies the message, and returns it."""
    for block in message.blocks if head is not None else ():
        if compacted(block):
            cast("dict[str, Any]", cast("Thinking", block).data)["seen"] = head
    return message


def newest(messages: Sequence[Message], stands: Stands) -> NativeCompaction | None:
    """Return the newest compaction that stands for what came before it.

    A message without a `seq` is part of a compaction in the log, which already is a whole conversation.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        for block_index in range(len(message.blocks) - 1, -1, -1) if message.seq else ():
            block = message.blocks[block_index]
            if compacted(block) and isinstance(block, Thinking) and (last := stands(block, message)) is not None:
                return NativeCompaction(index, block_index, last)
    return None


def since(messages: Sequence[Message], at: NativeCompaction) -> list[Message]:
    """Return a compaction and the messages that it does not stand for: those that came while it was made, and later.

    A later result directly follows its call, so it may be before the compaction. Then its call is included as well.
    """
    message, before = messages[at.message], messages[: at.message]
    later = [one for one in before if one.seq > at.last]
    answered = {block.call for one in later for block in one.blocks if isinstance(block, ToolResult)}
    answered -= {call.id for one in later for call in calls_in(one.blocks)}
    asked = {call.id: call for one in before for call in calls_in(one.blocks) if call.id in answered}
    blocks = message.blocks
    first = replace(message, blocks=[blocks[at.block], *calls_in(blocks[: at.block]), *blocks[at.block + 1 :]])
    calls = [Message(role="assistant", blocks=[*asked.values()])] if asked else []
    rest = [replace(one, blocks=[block for block in one.blocks if not compacted(block)]) for one in later]
    return [first, *calls, *rest, *messages[at.message + 1 :]]
