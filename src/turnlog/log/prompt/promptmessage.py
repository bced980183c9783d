"""Prompts: messages in which a person asks an agent for something, not text that programs write in that place."""

from __future__ import annotations

from collections.abc import Iterable

from turnlog.log.block import Text
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.erasure.content import Void
from turnlog.log.prompt import asks, preview_of, typed, without_preamble
from turnlog.log.text import one_line

LABEL = 100
"""The most characters of a prompt in a list of prompts."""


def is_prompt(message: Message) -> bool:
    """Whether a turn begins with this message. A picture alone is a prompt, too."""
    if message.role != "user" or message.display is False:
        return False
    if message.void:
        return message.void == Void.SEEN_BY_MODEL
    first = message.blocks[0] if message.blocks else None
    if type(first) is Text and first.text[:1].isalnum():
        return True  # the usual case, as this runs for every append: text of programs begins with punctuation
    return asks(text_of(message.blocks)) or any(type(block) is not Text for block in message.blocks)


def label_of(message: Message) -> str:
    """Return the text of a prompt on one line, without what agents put around it."""
    return one_line(typed(without_preamble(text_of(message.blocks))), LABEL)


def preview(messages: Iterable[Message]) -> str:
    """Return the first prompt with meaningful text, on one line; "" if there is none."""
    for message in messages:
        if message.role != "user" or message.display is False:
            continue
        text = preview_of(message.display if isinstance(message.display, str) else text_of(message.blocks))
        if text:
            return text
    return ""
