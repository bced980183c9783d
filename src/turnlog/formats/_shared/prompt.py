"""What a session is about, as far as its prompts say so, and which messages are prompts."""

from __future__ import annotations

from collections.abc import Iterable

from turnlog.log.block import Text
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.prompt import HOUSEKEEPING, INTERRUPTED, preview_of, typed, without_preamble


def preview(messages: Iterable[Message]) -> str:
    """The first prompt that says something, on one line; "" if none does."""
    for message in messages:
        if message.role != "user" or message.display is False:
            continue
        text = preview_of(message.display if isinstance(message.display, str) else text_of(message.blocks))
        if text:
            return text
    return ""


def is_prompt(message: Message) -> bool:
    """Whether an agent was asked for something: not where one was interrupted, or a command of its own was typed."""
    if message.role != "user" or message.display is False:
        return False
    text = typed(without_preamble(text_of(message.blocks))).strip()
    if not text:
        return any(type(block) is not Text for block in message.blocks)
    return text.split()[0] not in HOUSEKEEPING and not text.startswith(INTERRUPTED)
