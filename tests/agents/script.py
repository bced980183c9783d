"""What a scripted model says, and what an agent was seen to send: one vocabulary for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Thinking:
    text: str
    opaque: str = ""


@dataclass(frozen=True)
class Image:
    mime: str
    data: str
    """Base64, as it travels."""


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    input: Any
    """An object; a string for a tool that takes free text (Codex's `apply_patch`)."""


@dataclass(frozen=True)
class Result:
    call: str
    text: str
    error: bool | None = None
    """None where the dialect cannot say."""
    images: tuple[Image, ...] = ()


Block = Text | Thinking | Image | Call | Result
Conversation = list[tuple[str, list[Block]]]
"""Roles are user, assistant, tool and system."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer. `input` leaves out what came from or went to a cache; `output` includes `reasoning`."""

    input: int = 11
    cache_read: int = 0
    cache_write: int = 0
    output: int = 7
    reasoning: int = 0


@dataclass(frozen=True)
class Turn:
    """One answer of the model. With a `status` it is an error; with `hold` its end never comes.

    With `to`, it is for the conversation in which a user said that: a subagent asks at the same time as its parent.
    With `make`, what it says depends on the conversation so far. A `lasting` one is said as often as it is asked for.
    """

    blocks: list[Block] = field(default_factory=list[Block])
    usage: Usage = Usage()
    status: int = 200
    hold: bool = False
    to: str = ""
    make: Callable[[Conversation], list[Block]] | None = None
    lasting: bool = False

    @property
    def calls(self) -> list[Call]:
        return [block for block in self.blocks if isinstance(block, Call)]

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


def flat(conversation: Conversation) -> list[tuple[str, Block]]:
    """Block by block: agents differ in what they put into one message. Empty text says nothing."""
    return [(role, block) for role, blocks in conversation for block in blocks if block != Text("")]


def say(text: str, **usage: int) -> Turn:
    return Turn([Text(text)], Usage(**usage))
