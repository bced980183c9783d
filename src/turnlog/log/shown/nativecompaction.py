"""What a provider compacted itself: a block that it takes back in place of everything that came before it.

It is a `Thinking` block of that provider whose `data["compaction"]` has what it made, to the byte. `data["seen"]` is
the id of the head of the conversation that it answers; where that is not told, it stands for all before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from turnlog.log.block import Block, Thinking, ToolResult, calls_in
from turnlog.log.entry import Message

Stands = Callable[[Thinking, Message], "int | None"]
"""Up to which `seq` the compaction in a message stands for what was said; None where it does not."""


class NativeCompaction(NamedTuple):
    """Where a compaction is, and how far it goes."""

    message: int
    """The position of the message that it is in."""
    block: int
    last: int
    """The `seq` up to which it stands for what was said."""


def compacted(block: Block) -> list[dict[str, Any]]:
    """What a provider put in place of all that came before the block; empty for any other block."""
    data = block.data if isinstance(block, Thinking) else None
    compaction: Any = cast("dict[str, Any]", data).get("compaction") if isinstance(data, dict) else None
    return cast("list[dict[str, Any]]", compaction) if isinstance(compaction, list) else []


def answered_head(block: Thinking) -> str | None:
    """The id of the head of the conversation that a compaction answers; None if it was not noted."""
    return cast("dict[str, str | None]", block.data).get("seen")


def note_answered_head(message: Message, head: str | None) -> Message:
    """Note in every compaction of a message which head it answers. Changes the message, and returns it."""
    for block in message.blocks if head is not None else ():
        if compacted(block):
            cast("dict[str, Any]", cast("Thinking", block).data)["seen"] = head
    return message


def newest(messages: Sequence[Message], stands: Stands) -> NativeCompaction | None:
    """The newest compaction that stands for what came before it.

    A message without a number is part of a compaction of the log's, which is a whole conversation already.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        for place in range(len(message.blocks) - 1, -1, -1) if message.seq else ():
            block = message.blocks[place]
            if compacted(block) and isinstance(block, Thinking) and (last := stands(block, message)) is not None:
                return NativeCompaction(index, place, last)
    return None


def since(messages: Sequence[Message], at: NativeCompaction) -> list[Message]:
    """A compaction, and what it does not stand for: what came while it was made, and later.

    A later result is put behind its call, so it may be found before. Its call goes along.
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
