"""How many tokens a prompt has, as far as that can be told without the model's own tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Message

BY_TEXT = "text"
BY_USAGE = "usage+text"
_PER_MESSAGE = 4
_PER_BLOCK = 3
_PER_PICTURE = 1_500
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|\n+|[^A-Za-z0-9\s\x80-\U0010ffff]")


class Tokens(int):
    """An estimate. `method` is `text`, or `usage+text`: the newest reported usage, and the text since."""

    method: str

    def __new__(cls, count: int, method: str) -> Tokens:
        """A number that knows how it was found."""
        self = super().__new__(cls, count)
        self.method = method
        return self

    def __repr__(self) -> str:
        return f"Tokens({int(self)}, {self.method!r})"


def estimate(
    messages: Sequence[Message], system: str, tools: Sequence[Any], is_stale: Callable[[Message], bool]
) -> Tokens:
    """The size of a prompt: what the newest response reported for everything up to it, and the text that came since.

    A response to another conversation than this one (before a compaction or an edit) says nothing about it.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        usage = message.usage
        if message.role == "assistant" and usage is not None and usage.all_input_tokens and not is_stale(message):
            return Tokens(usage.all_input_tokens + usage.output_tokens + _of_messages(messages[index + 1 :]), BY_USAGE)
    frame = tokens_in(system) + sum(tokens_in(_json(tool)) for tool in tools)
    return Tokens(frame + _of_messages(messages), BY_TEXT)


def tokens_in(text: str) -> int:
    """About how many tokens a text has."""
    total = 0.0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isascii():
            total += 1
    return round(total)


def _of_messages(messages: Sequence[Message]) -> int:
    return sum(_PER_MESSAGE + sum(_of_block(block) for block in message.blocks) for message in messages)


def _of_block(block: AnyBlock) -> int:
    if isinstance(block, (Text, Thinking)):
        return tokens_in(block.text)
    if isinstance(block, ToolCall):
        return _PER_BLOCK + tokens_in(block.name) + tokens_in(_json(block.input))
    if isinstance(block, ToolResult):
        if isinstance(block.content, str):
            return _PER_BLOCK + tokens_in(block.content)
        return _PER_BLOCK + sum(_of_block(part) for part in block.content)
    return _PER_PICTURE if isinstance(block, (Image, File)) else 0


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
