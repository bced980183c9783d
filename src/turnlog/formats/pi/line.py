"""The usual lines of a session, as far as they matter. Any other line is decoded whole."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, field
from msgspec.json import Decoder

from turnlog.formats._shared.records import Moment

_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class TextPart(Struct, tag_field="type", tag="text", gc=False):
    """Text."""

    text: str


class Plain(Struct, gc=False):
    """Text where there is nothing else. Of a type that stands alone msgspec does not ask for the tag."""

    type: Literal["text"]
    text: str


class CallPart(Struct, tag_field="type", tag="toolCall", gc=False):
    """The model calls a tool."""

    id: Any = None
    name: Any = None
    arguments: Any = None


class ThinkingPart(Struct, tag_field="type", tag="thinking", gc=False):
    """What the model thought."""

    thinking: Any = None
    signature: Any = field(default=None, name="thinkingSignature")
    redacted: Any = None


class PiCost(Struct, gc=False):
    """What a request cost, in dollars."""

    total: Annotated[float, Meta(ge=0, lt=1e9)] = 0.0


class PiCounts(Struct, gc=False):
    """The tokens of one request."""

    input: _Count
    output: _Count = 0
    read: _Count = field(default=0, name="cacheRead")
    write: _Count = field(default=0, name="cacheWrite")
    cost: PiCost | None = None


class PiAsked(Struct, tag_field="role", tag="user", gc=False):
    """What people said."""

    content: list[Plain]


class PiAnswered(Struct, tag_field="role", tag="assistant", gc=False):
    """What the model said."""

    content: list[TextPart | CallPart | ThinkingPart]
    api: Any = None
    provider: Any = None
    model: Any = None
    usage: PiCounts | None = None
    stop: Any = field(default=None, name="stopReason")
    error: Any = field(default=None, name="errorMessage")


class PiTold(Struct, tag_field="role", tag="toolResult", gc=False):
    """What a tool answered."""

    content: list[Plain]
    call: Any = field(default=None, name="toolCallId")
    name: Any = field(default=None, name="toolName")
    is_error: Any = field(default=None, name="isError")
    details: Any = None
    usage: Any = None
    """What the tool itself asked a model for."""


class PiTalk(Struct, gc=False):
    """A message."""

    type: Literal["message"]
    id: Annotated[str, Meta(min_length=1)]
    timestamp: Moment
    message: PiAsked | PiAnswered | PiTold
    parent: Any = field(default=UNSET, name="parentId")


decode_line = Decoder(PiTalk).decode
