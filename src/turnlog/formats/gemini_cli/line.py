"""The usual messages of a chat, as far as they matter. Any other is decoded whole."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.json import Decoder

from turnlog.formats._shared.records import Moment

_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class GeminiPart(Struct, forbid_unknown_fields=True, gc=False):
    """Text of a person's."""

    text: str


class GeminiTold(Struct, gc=False):
    """What a tool answered, as text."""

    output: str


class Response(Struct, gc=False):
    """The same with what it answers."""

    response: GeminiTold
    id: str | None = None


class Result(Struct, gc=False):
    """A part that is a response."""

    response: Response = field(name="functionResponse")


class GeminiCall(Struct, gc=False):
    """A tool that was called, and what it answered."""

    id: Annotated[str, Meta(min_length=1)]
    name: str | None = None
    args: Any = None
    status: str | None = None
    result: list[Result] | None = None
    shown: Any = field(default=None, name="resultDisplay")
    timestamp: str | None = None


class GeminiTokens(Struct, gc=False):
    """What a request cost."""

    input: _Count
    output: _Count = 0
    cached: _Count = 0
    thoughts: _Count = 0
    tool: _Count = 0


class GeminiThought(Struct, gc=False):
    """What the model thought."""

    subject: str = ""
    description: str = ""


class GeminiAsked(Struct, tag_field="type", tag="user", gc=False):
    """What people said."""

    timestamp: Moment
    content: list[GeminiPart]
    shown: list[GeminiPart] | str | None = field(default=None, name="displayContent")


class GeminiAnswered(Struct, tag_field="type", tag="gemini", gc=False):
    """What the model said, complete."""

    timestamp: Moment
    content: str
    tokens: GeminiTokens
    calls: list[GeminiCall] = field(default_factory=list[GeminiCall], name="toolCalls")
    thoughts: list[GeminiThought] | None = None
    model: str | None = None


decode_line = Decoder(GeminiAsked | GeminiAnswered).decode
