"""Estimates of the number of tokens, without the model's own tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context.nativecompaction import Stands, compacted, newest, since
from turnlog.log.entry import Message
from turnlog.log.plainjson import json_bytes
from turnlog.log.startup import pattern

BY_TEXT = "text"
BY_USAGE = "usage+text"
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIGITS = b"0123456789"
_MARKS = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_WORDS = pattern("[A-Za-z]+")
_LINES = pattern(r"\n\s*")
_GAPS = pattern(r"[ \t]{2,}")
# Tokens per item, fitted to the usage that real sessions of three providers reported; prose results in 1.4 tokens per
# word. A call or a result costs 50 more than its text, for its names, ids and brackets.
_LETTER, _WORD, _DIGIT, _MARK, _LINE, _GAP, _WIDE = 0.25, 0.17, 0.8, 0.45, 1.35, 1.15, 1.05
_PER_MESSAGE = 4
_PER_BLOCK = 50
_PER_PICTURE = 1_500
_PIECE = 1 << 17
"""The number of characters that are counted at once: no other thread of the process runs meanwhile."""
_SEALED = 5
"""About the number of characters per token in a provider's compaction."""


class Tokens(int):
    """An estimate. `method` is `text`, or `usage+text`: the newest reported usage, and the text since."""

    method: str

    def __new__(cls, count: int, method: str) -> Tokens:
        """A number with the method of its estimate."""
        self = super().__new__(cls, count)
        self.method = method
        return self

    def __repr__(self) -> str:
        return f"Tokens({int(self)}, {self.method!r})"


def estimate(
    messages: Sequence[Message], system: str, tools: Sequence[Any], is_stale: Callable[[Message], bool], stands: Stands
) -> Tokens:
    """Estimate the size of a prompt: the newest usage that a response reported, plus the text since then.

    A response to a different conversation (before a compaction or an edit) is ignored. A response in which the provider
    compacted reports the size before that: then the compaction and the text since are counted. Reasoning is not
    counted: most of it is not sent again.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        usage = message.usage
        if any(map(compacted, message.blocks)):
            native = newest(messages[: index + 1], stands)
            if native is not None:
                messages = since(messages, native)
                break
        if message.role == "assistant" and usage is not None and usage.all_input_tokens and not is_stale(message):
            visible_tokens = max(0, usage.output_tokens - usage.reasoning_tokens)
            return Tokens(usage.all_input_tokens + visible_tokens + _of_messages(messages[index + 1 :]), BY_USAGE)
    frame = tokens_in(system) + sum(tokens_in(_json(tool)) for tool in tools)
    return Tokens(frame + _of_messages(messages), BY_TEXT)


def tokens_in(text: str) -> int:
    """Estimate the number of tokens in a text."""
    if len(text) <= _PIECE:
        return round(_weight(text))
    return round(sum(_weight(text[at : at + _PIECE]) for at in range(0, len(text), _PIECE)))


def _weight(text: str) -> float:
    data = text.encode("utf-8", "replace")

    def number(characters: bytes) -> int:
        return len(data) - len(data.translate(None, characters))

    wide = 0 if len(data) == len(text) else len(text) - len(data.decode().encode("ascii", "ignore"))
    return (
        _LETTER * number(_LETTERS)
        + _WORD * len(_WORDS.findall(text))
        + _DIGIT * number(_DIGITS)
        + _MARK * number(_MARKS)
        + _LINE * len(_LINES.findall(text))
        + _GAP * len(_GAPS.findall(text))
        + _WIDE * wide
    )


def tokens_of(message: Message) -> int:
    """Estimate the number of tokens in a message, by its text."""
    return _PER_MESSAGE + sum(_of_block(block) for block in message.blocks)


def _of_messages(messages: Sequence[Message]) -> int:
    return sum(map(tokens_of, messages))


def _of_block(block: AnyBlock) -> int:
    if isinstance(block, Text):
        return tokens_in(block.text)
    if isinstance(block, ToolCall):
        return _PER_BLOCK + tokens_in(block.name) + tokens_in(_json(block.input))
    if isinstance(block, ToolResult):
        if isinstance(block.content, str):
            return _PER_BLOCK + tokens_in(block.content)
        return _PER_BLOCK + sum(_of_block(part) for part in block.content)
    if isinstance(block, (Image, File)):
        return _PER_PICTURE
    if isinstance(block, Thinking) and (kept := compacted(block)):
        return tokens_in(block.text) + len(_json(kept)) // _SEALED
    return 0


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json_bytes(value).decode()
