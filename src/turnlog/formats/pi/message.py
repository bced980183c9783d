"""Messages of pi, as entries: the usual ones by the types of their lines, any other as it was decoded."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Meta, Struct, convert, field
from msgspec.json import Decoder
from msgspec.structs import replace

from turnlog.formats._shared.foreign import unknown
from turnlog.formats._shared.json import decode, from_base64
from turnlog.formats._shared.records import Moment
from turnlog.formats._shared.value import fields, items, micros, text, usage_in
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Custom, Entry, Message, Stop
from turnlog.log.usage import Usage

_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class TextPart(Struct, tag_field="type", tag="text", gc=False):
    """Text."""

    text: str


class Plain(Struct, gc=False):
    """Text where there is nothing else. Of a type that stands alone msgspec does not ask for the tag."""

    type: Literal["text"]
    text: str


class _CallPart(Struct, tag_field="type", tag="toolCall", gc=False):
    id: Any = None
    name: Any = None
    arguments: Any = None


class ThinkingPart(Struct, tag_field="type", tag="thinking", gc=False):
    """What the model thought."""

    thinking: Any = None
    signature: Any = field(default=None, name="thinkingSignature")
    redacted: Any = None


class _Cost(Struct, gc=False):
    """What a request cost, in dollars."""

    total: Annotated[float, Meta(ge=0, lt=1e9)] = 0.0


class _Counts(Struct, gc=False):
    input: _Count
    output: _Count = 0
    read: _Count = field(default=0, name="cacheRead")
    write: _Count = field(default=0, name="cacheWrite")
    cost: _Cost | None = None


class _Asked(Struct, tag_field="role", tag="user", gc=False):
    content: list[Plain]


class _Answered(Struct, tag_field="role", tag="assistant", gc=False):
    content: list[TextPart | _CallPart | ThinkingPart]
    api: Any = None
    provider: Any = None
    model: Any = None
    usage: _Counts | None = None
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
    message: _Asked | _Answered | PiTold
    parent: Any = field(default=UNSET, name="parentId")


decode_line = Decoder(PiTalk).decode


_STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
}
_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "google": "gemini"}


def said(raw: _Asked | _Answered | PiTold, at: datetime | None) -> Message:
    """A message of a usual kind."""
    if type(raw) is PiTold:
        result = ToolResult(
            call=str(raw.call or ""),
            name=text(raw.name),
            content=[Text(text=part.text) for part in raw.content],
            is_error=raw.is_error is True,
            details=raw.details,
        )
        return Message(id="-", role="tool", blocks=[result], at=at)
    if type(raw) is _Asked:
        return Message(id="-", role="user", blocks=[Text(text=part.text) for part in raw.content], at=at)
    answer = cast("_Answered", raw)
    provider, spent = _provider(answer.api, answer.provider), answer.usage
    blocks: list[AnyBlock] = []
    for part in answer.content:
        if type(part) is TextPart:
            blocks.append(Text(text=part.text))
        elif type(part) is _CallPart:
            blocks.append(ToolCall(id=str(part.id or ""), name=str(part.name or ""), input=part.arguments))
        else:
            thought = cast("ThinkingPart", part)
            data = _signature(thought.signature, thought.redacted, provider)
            blocks.append(Thinking(text=str(thought.thinking or ""), provider=provider, data=data))
    usage = _spent(spent) if spent is not None else None
    return _answered(blocks, usage, answer, at)


def _answered(blocks: list[AnyBlock], usage: Usage | None, about: _Answered, at: datetime | None) -> Message:
    meta = {"api": about.api, "provider": about.provider}
    error = text(about.error)
    return Message(
        id="-",
        role="assistant",
        blocks=blocks,
        model=None if about.model == "unknown" else text(about.model),
        usage=usage,
        stop=_STOPS.get(str(about.stop)),
        error={"message": error} if error else None,
        meta={key: value for key, value in meta.items() if text(value)} or None,
        at=at,
    )


def _spent(raw: _Counts) -> Usage:
    cost = raw.cost.total if raw.cost is not None else 0
    return Usage(
        input_tokens=raw.input,
        cache_read_tokens=raw.read,
        cache_write_tokens=raw.write,
        output_tokens=raw.output,
        cost_micros=round(cost * 1_000_000) if cost else None,
    )


def _provider(api: Any, named: Any) -> str | None:
    return _PROVIDERS.get(str(api).partition("-")[0], text(named))


def message_of(raw: dict[str, Any]) -> Entry | None:
    """A message of any kind; None for one that makes no sense."""
    role = raw.get("role")
    if role in ("user", "system"):
        return Message(id="-", role=role, blocks=blocks_of(raw.get("content")))
    if role == "assistant":
        provider = _provider(raw.get("api"), raw.get("provider"))
        blocks = [_answer(part, provider) for part in items(raw.get("content"))]
        about = convert({**raw, "content": [], "usage": None}, _Answered)
        return _answered(blocks, usage_of(fields(raw.get("usage"))), about, None)
    if role == "toolResult":
        content = raw.get("content")
        result = ToolResult(
            call=str(raw.get("toolCallId") or ""),
            name=text(raw.get("toolName")),
            content=content if isinstance(content, str) else blocks_of(content),
            is_error=raw.get("isError") is True,
            details=raw.get("details"),
        )
        return Message(id="-", role="tool", blocks=[result])
    if role == "bashExecution":
        about = {key: value for key, value in raw.items() if key not in ("role", "timestamp")}
        ran = f"Ran `{raw.get('command')}`\n{raw.get('output') or ''}".rstrip()
        return Custom(kind="pi.bash", data=about, blocks=[] if raw.get("excludeFromContext") else [Text(text=ran)])
    if role in ("custom", "hookMessage"):
        about = {key: raw.get(key) for key in ("details", "display")}
        return Custom(kind=f"pi.{raw.get('customType')}", data=about, blocks=blocks_of(raw.get("content")))
    return None


def blocks_of(content: Any) -> list[AnyBlock]:
    """Content of any kind."""
    if isinstance(content, str):
        return [Text(text=content)]
    return [_block(part) for part in items(content)]


def _block(part: dict[str, Any]) -> AnyBlock:
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    if part.get("type") == "image" and (data := from_base64(part.get("data"))) is not None:
        return Image(media_type=text(part.get("mimeType")), data=data)
    return unknown("pi", part)


def _answer(part: dict[str, Any], provider: str | None) -> AnyBlock:
    kind = part.get("type")
    if kind == "thinking":
        return Thinking(
            text=str(part.get("thinking") or ""),
            provider=provider,
            data=_signature(part.get("thinkingSignature"), part.get("redacted"), provider),
        )
    if kind == "toolCall":
        return ToolCall(id=str(part.get("id") or ""), name=str(part.get("name") or ""), input=part.get("arguments"))
    return _block(part)


def _signature(given: Any, redacted: Any, provider: str | None) -> Any:
    signature = text(given)
    if signature is None:
        return None
    if provider == "openai":
        try:
            return {"item": fields(decode(signature.encode()))}
        except (ValueError, UnicodeEncodeError):
            return {"signature": signature}
    return {"redacted": signature} if redacted is True else {"signature": signature}


def usage_of(raw: dict[str, Any]) -> Usage | None:
    """What a request cost; None if nobody says."""
    if not raw:
        return None
    usage = usage_in(raw, "input", "output", "cacheRead", "cacheWrite")
    return replace(usage, cost_micros=micros(fields(raw.get("cost")).get("total")))
