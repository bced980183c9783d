"""Which messages are prompts: what somebody wants from an agent, and not what programs say in the place of a person."""

from __future__ import annotations

from turnlog.log.block import Text
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.erasure.content import SAID
from turnlog.log.prompt import asks


def is_prompt(message: Message) -> bool:
    """Whether a turn begins with it. A picture alone asks for something, too."""
    if message.role != "user" or message.display is False:
        return False
    if message.void:
        return message.void == SAID
    first = message.blocks[0] if message.blocks else None
    if type(first) is Text and first.text[:1].isalnum():
        return True  # the usual case, on the way of every append: what programs say begins with a mark
    return asks(text_of(message.blocks)) or any(type(block) is not Text for block in message.blocks)
