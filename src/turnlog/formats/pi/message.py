"""Messages of pi, as entries: the usual ones by the types of their lines, any other as it was decoded."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Meta, Struct, ValidationError, convert, field
from msgspec.json import Decoder
from msgspec.structs import replace

from turnlog.formats._shared.blocks import unknown
from turnlog.interop.base64 import from_base64
from turnlog.interop.json import decode
from turnlog.interop.records import Moment, Tokens
from turnlog.interop.value import fields, items, micros, text, usage_in
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Custom, Entry, Message, Stop
from turnlog.log.usage import Usage


class _TextPart(Struct, tag_field="type", tag="text", gc=False):
    text: str


class _Plain(Struct, gc=False):
    """Text where there is nothing else. Of a type that stands alone msgspec does not ask for the tag."""

    type: Literal["text"]
    text: str


class _CallPart(Struct, tag_field="type", tag="toolCall", gc=False):
    id: Any = None
    name: Any = None
    arguments: Any = None


class _ThinkingPart(Struct, tag_field="type", tag="thinking", gc=False):
    thinking: Any = None
    signature: Any = field(default=None, name="thinkingSignature")
    redacted: Any = None


_Part = _TextPart | _CallPart | _ThinkingPart


class _Cost(Struct, gc=False):
    total: Annotated[float, Meta(ge=0, lt=1e9)] = 0.0


class _Counts(Struct, gc=False):
    input: Tokens
    output: Tokens = 0
    read: Tokens = field(default=0, name="cacheRead")
    write: Tokens = field(default=0, name="cacheWrite")
    cost: _Cost | None = None


class _UserMessage(Struct, tag_field="role", tag="user", gc=False):
    content: list[_Plain]


class _AssistantMessage(Struct, tag_field="role", tag="assistant", gc=False):
    content: list[_Part]
    api: Any = None
    provider: Any = None
    model: Any = None
    usage: _Counts | None = None
    stop: Any = field(default=None, name="stopReason")
    error: Any = field(default=None, name="errorMessage")


class PiToolResult(Struct, tag_field="role", tag="toolResult", gc=False):
    """What a tool answered."""

    content: list[_Plain]
    call: Any = field(default=None, name="toolCallId")
    name: Any = field(default=None, name="toolName")
    is_error: Any = field(default=None, name="isError")
    details: Any = None
    usage: Any = None
    """What the tool itself asked a model for."""


class PiMessageLine(Struct, gc=False):
    """A line with a message of a usual kind."""

    type: Literal["message"]
    id: Annotated[str, Meta(min_length=1)]
    timestamp: Moment
    message: _UserMessage | _AssistantMessage | PiToolResult
    parent: Any = field(default=UNSET, name="parentId")


decode_line = Decoder(PiMessageLine).decode
_STOPS: dict[str, Stop] = {
    "stop": "end", "length": "length", "toolUse": "tool_use", "error": "error", "aborted": "aborted",
}  # fmt: skip
_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "google": "gemini"}


def message_of_line(raw: _UserMessage | _AssistantMessage | PiToolResult) -> Message:
    """The message of such a line."""
    if type(raw) is PiToolResult:
        return _tool_message([Text(text=part.text) for part in raw.content], raw)
    if type(raw) is _UserMessage:
        return Message(id="-", role="user", blocks=[Text(text=part.text) for part in raw.content])
    answer = cast("_AssistantMessage", raw)
    provider, counts = _provider(answer), answer.usage
    blocks = [_answer_block(part, provider) for part in answer.content]
    return _answer_message(blocks, _usage_of_counts(counts) if counts is not None else None, answer)


def message_of(raw: dict[str, Any]) -> Entry | None:
    """A message of any kind; None for one that makes no sense."""
    role, content = raw.get("role"), raw.get("content")
    if role in ("user", "system"):
        return Message(id="-", role=role, blocks=blocks_of(content))
    if role == "assistant":
        about = convert({**raw, "content": [], "usage": None}, _AssistantMessage)
        provider = _provider(about)
        return _answer_message(
            [_any_answer_block(part, provider) for part in items(content)], usage_of(raw.get("usage")), about
        )
    if role == "toolResult":
        about = convert({**raw, "content": []}, PiToolResult)
        return _tool_message(content if isinstance(content, str) else blocks_of(content), about)
    if role == "bashExecution":
        about = {key: value for key, value in raw.items() if key not in ("role", "timestamp")}
        ran = f"Ran `{raw.get('command')}`\n{raw.get('output') or ''}".rstrip()
        return Custom(kind="pi.bash", data=about, blocks=[] if raw.get("excludeFromContext") else [Text(text=ran)])
    return custom(raw) if role in ("custom", "hookMessage") else None


def custom(raw: dict[str, Any]) -> Custom:
    """A message of an extension of the program."""
    about = {key: raw.get(key) for key in ("details", "display")}
    return Custom(kind=f"pi.{raw.get('customType')}", data=about, blocks=blocks_of(raw.get("content")))


def _tool_message(content: str | list[AnyBlock], about: PiToolResult) -> Message:
    result = ToolResult(
        call=str(about.call or ""),
        name=text(about.name),
        content=content,
        is_error=about.is_error is True,
        details=about.details,
    )
    return Message(id="-", role="tool", blocks=[result])


def _answer_message(blocks: list[AnyBlock], usage: Usage | None, about: _AssistantMessage) -> Message:
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
    )


def _usage_of_counts(raw: _Counts) -> Usage:
    cost = raw.cost.total if raw.cost is not None else 0
    return Usage(
        input_tokens=raw.input,
        cache_read_tokens=raw.read,
        cache_write_tokens=raw.write,
        output_tokens=raw.output,
        cost_micros=round(cost * 1_000_000) if cost else None,
    )


def usage_of(raw: Any) -> Usage | None:
    """The usage of a request; None if there is none."""
    counts = fields(raw)
    if not counts:
        return None
    usage = usage_in(counts, "input", "output", "cacheRead", "cacheWrite")
    return replace(usage, cost_micros=micros(fields(counts.get("cost")).get("total")))


def _provider(about: _AssistantMessage) -> str | None:
    return _PROVIDERS.get(str(about.api).partition("-")[0], text(about.provider))


def blocks_of(content: Any) -> list[AnyBlock]:
    """Content of any kind."""
    return [Text(text=content)] if isinstance(content, str) else [_block(part) for part in items(content)]


def _block(part: dict[str, Any]) -> AnyBlock:
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    if part.get("type") == "image" and (data := from_base64(part.get("data"))) is not None:
        return Image(media_type=text(part.get("mimeType")), data=data)
    return unknown("pi", part)


def _any_answer_block(part: dict[str, Any], provider: str | None) -> AnyBlock:
    try:
        return _answer_block(convert(part, _Part), provider)
    except ValidationError:
        return _block(part)


def _answer_block(part: _Part, provider: str | None) -> AnyBlock:
    if type(part) is _TextPart:
        return Text(text=part.text)
    if type(part) is _CallPart:
        return ToolCall(id=str(part.id or ""), name=str(part.name or ""), input=part.arguments)
    thought = cast("_ThinkingPart", part)
    data = _signature(thought.signature, thought.redacted, provider)
    return Thinking(text=str(thought.thinking or ""), provider=provider, data=data)


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
