"""What a session is about, as far as its prompts say so."""

from __future__ import annotations

from collections.abc import Iterable

from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.prompt import preview_of


def preview(messages: Iterable[Message]) -> str:
    """The first prompt that says something, on one line; "" if none does."""
    for message in messages:
        if message.role != "user" or message.display is False:
            continue
        text = preview_of(message.display if isinstance(message.display, str) else text_of(message.blocks))
        if text:
            return text
    return ""
