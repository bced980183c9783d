"""Which messages are prompts: what a person wants from an agent, not what programs say in a person's place."""

from __future__ import annotations

from turnlog.log.block import Text
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.erasure.content import SAID
from turnlog.log.prompt import asks, typed, without_preamble
from turnlog.log.text import one_line

LABEL = 100
"""The most characters of a prompt in a list of prompts."""


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


def label_of(message: Message) -> str:
    """What a prompt asks for, on one line, without what agents put around it."""
    return one_line(typed(without_preamble(text_of(message.blocks))), LABEL)
