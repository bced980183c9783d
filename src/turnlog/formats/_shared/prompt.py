"""What a person typed, without what agents put around it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from turnlog.log.block import Text
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.text import one_line

PREVIEW = 120
_INJECTED = re.compile(
    r"\A\s*(?:\[SYSTEM:[^\]]*(?:\]|\Z)"
    r"|# Context from my IDE setup:.*?## My request for Codex:"
    r"|<(system-reminder|environment_context|user_instructions|ide_context|ide_opened_file|ide_selection"
    r"|local-command-caveat|local-command-stdout|local-command-stderr|command-message|task-notification"
    r"|subagent_notification)>.*?(?:</\1>|\Z)"
    r"|<(file|image) (?:name|path)=[^>]*>.*?(?:</\2>|\Z))\s*",
    re.DOTALL,
)
_COMMAND = re.compile(
    r"<command-name>([^<]*)</command-name>\s*(?:<command-message>[^<]*</command-message>\s*)?"
    r"(?:<command-args>(.*?)</command-args>\s*)?",
    re.DOTALL,
)
_INTERRUPTED = ("[Request interrupted by user", "<turn_aborted>")
_HOUSEKEEPING = frozenset([
    "/clear", "/compact", "/config", "/context", "/cost", "/exit", "/help", "/ide", "/login", "/logout", "/mcp",
    "/model", "/quit", "/resume", "/status",
])  # fmt: skip


def preview(messages: Iterable[Message]) -> str:
    """The first thing that a person said, on one line; "" if nobody said anything."""
    for message in messages:
        if message.role != "user" or message.display is False:
            continue
        shown = message.display if isinstance(message.display, str) else text_of(message.blocks)
        text = one_line(typed(without_preamble(shown)), PREVIEW)
        if text and text not in _HOUSEKEEPING:
            return text
    return ""


def is_prompt(message: Message) -> bool:
    """Whether an agent was asked for something: not where one was interrupted, or a command of its own was typed."""
    if message.role != "user" or message.display is False:
        return False
    text = typed(without_preamble(text_of(message.blocks))).strip()
    if not text:
        return any(type(block) is not Text for block in message.blocks)
    return text.split()[0] not in _HOUSEKEEPING and not text.startswith(_INTERRUPTED)


def without_preamble(text: str) -> str:
    """The text without what an agent put in front of it, such as `[SYSTEM: …]`."""
    while match := _INJECTED.match(text):
        text = text[match.end() :]
    return text


def typed(text: str) -> str:
    """The command that a person typed, where an agent wrote it down in tags; any other text as it is."""
    match = _COMMAND.match(text)
    if match is None:
        return text
    return f"{match[1]} {(match[2] or '').strip()}".strip() + "\n" * bool(text[match.end() :]) + text[match.end() :]
