"""What Gemini CLI stores of a message, as blocks: the usual ones by their types, any other as it was decoded."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.json import Decoder

from turnlog.formats._shared.parts import block, parts_of, response, said
from turnlog.formats._shared.records import Moment
from turnlog.formats._shared.value import count, fields, items, moment, text
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Message, Note
from turnlog.log.usage import Usage
from turnlog.wire import gemini

_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class _Part(Struct, forbid_unknown_fields=True, gc=False):
    """Text of a person's."""

    text: str


class _Told(Struct, gc=False):
    """What a tool answered, as text."""

    output: str


class Response(Struct, gc=False):
    """The same with what it answers."""

    response: _Told
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


class _Tokens(Struct, gc=False):
    """What a request cost."""

    input: _Count
    output: _Count = 0
    cached: _Count = 0
    thoughts: _Count = 0
    tool: _Count = 0


class _Thought(Struct, gc=False):
    subject: str = ""
    description: str = ""


class GeminiAsked(Struct, tag_field="type", tag="user", gc=False):
    """What people said."""

    timestamp: Moment
    content: list[_Part]
    shown: list[_Part] | str | None = field(default=None, name="displayContent")


class GeminiAnswered(Struct, tag_field="type", tag="gemini", gc=False):
    """What the model said, complete."""

    timestamp: Moment
    content: str
    tokens: _Tokens
    calls: list[GeminiCall] = field(default_factory=list[GeminiCall], name="toolCalls")
    thoughts: list[_Thought] | None = None
    model: str | None = None


decode_line = Decoder(GeminiAsked | GeminiAnswered).decode


PROVIDER = "gemini"
_FAILED = ("error", "cancelled")
_DONE = ("success", *_FAILED)
_ASIDE = ("<session_context>", "<hook_context>")
"""How a text in the user's place begins that the program puts there itself."""


def is_aside(blocks: list[AnyBlock]) -> bool:
    """Whether a message came from the program, and people do not see it."""
    first = blocks[0] if blocks else None
    return isinstance(first, Text) and first.text.lstrip().startswith(_ASIDE)


def answered(record: dict[str, Any]) -> tuple[Message, Message | None]:
    """What the model said, and what the tools that it called answered."""
    content = record.get("content")
    parts = [part for part in parts_of(content) if "functionResponse" not in part]
    calls = items(record.get("toolCalls"))
    is_whole = any("functionCall" in part or part.get("thought") for part in parts)
    blocks: list[AnyBlock]
    if isinstance(content, str):
        blocks = [Text(text=content)] if content else []
    else:
        raw = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "responseId": record.get("id"),
        }
        blocks = list(gemini.draft(raw).blocks)
    ids = [text(call.get("id")) or f"{record.get('id')}-{index}" for index, call in enumerate(calls)]
    if not is_whole:
        named = [(id, str(call.get("name") or ""), call.get("args")) for id, call in zip(ids, calls, strict=True)]
        called = [ToolCall(id=id, name=name, input=given) for id, name, given in named]
        blocks = [*_thoughts(record.get("thoughts")), *blocks, *called]
    results: list[AnyBlock] = [
        _result(call, id)
        for id, call in zip(ids, calls, strict=True)
        if call.get("result") or call.get("status") in _DONE
    ]
    message = Message(
        id="-",
        role="assistant",
        blocks=blocks,
        model=None if record.get("model") == "unknown" else text(record.get("model")),
        usage=usage_of(fields(record.get("tokens"))),
        stop="tool_use" if any(isinstance(block, ToolCall) for block in blocks) else "end",
    )
    if not results:
        return message, None
    ends = [ended for call in calls if (ended := moment(call.get("timestamp"))) is not None]
    return message, Message(id="-", role="tool", blocks=results, at=max(ends, default=None))


def complete(answer: GeminiAnswered) -> tuple[Message, Message | None]:
    """The same of an answer of the usual kind."""
    blocks: list[AnyBlock] = []
    for thought in answer.thoughts or ():
        texts = [words for words in (thought.subject, thought.description) if words]
        blocks.append(Thinking(text="\n".join(texts), provider=PROVIDER))
    if answer.content:
        blocks.append(Text(text=answer.content))
    results: list[AnyBlock] = []
    at: datetime | None = None
    for call in answer.calls:
        blocks.append(ToolCall(id=call.id, name=call.name or "", input=call.args))
        if call.result or call.status in _DONE:
            results.append(_told(call))
        if call.timestamp is not None and (ended := moment(call.timestamp)) is not None and (at is None or ended > at):
            at = ended
    tokens = answer.tokens
    cached, thoughts = tokens.cached, tokens.thoughts
    message = Message(
        id="-",
        role="assistant",
        blocks=blocks,
        model=None if answer.model == "unknown" else answer.model or None,
        usage=Usage(
            (tokens.input - cached if tokens.input > cached else 0) + tokens.tool,
            cached,
            output_tokens=tokens.output + thoughts,
            reasoning_tokens=thoughts,
        ),
        stop="tool_use" if answer.calls else "end",
        at=answer.timestamp,
    )
    if not results:
        return message, None
    return message, Message(id="-", role="tool", blocks=results, at=at or answer.timestamp)


def _told(call: GeminiCall) -> ToolResult:
    parts, display = call.result or [], call.shown
    if len(parts) > 1:
        parts = [part for part in parts if part.response.id is None or part.response.id == call.id] or parts
    content: Any = [Text(text=part.response.response.output) for part in parts] if len(parts) != 1 else ""
    if parts:
        words = parts[0].response.response.output
        content = content or words
        if isinstance(display, str) and words.startswith(display):
            display = None
    return ToolResult(
        call=call.id, name=call.name or None, content=content, is_error=call.status in _FAILED, details=display
    )


def _thoughts(thoughts: Any) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    for thought in items(thoughts):
        words = [str(thought[key]) for key in ("subject", "description") if thought.get(key)]
        blocks.append(Thinking(text="\n".join(words), provider=PROVIDER))
    return blocks


def _result(call: dict[str, Any], id: str) -> ToolResult:
    texts: list[AnyBlock] = []
    is_error = call.get("status") in _FAILED
    parts = parts_of(call.get("result"))
    mine = [part for part in parts if fields(part.get("functionResponse")).get("id") in (None, call.get("id"))]
    for part in mine or parts:  # each of several at once may hold what all of them answered
        if "functionResponse" in part:
            answer = response(fields(part["functionResponse"]))
            is_error = is_error or answer.is_error
            texts.append(Text(text=answer.content if isinstance(answer.content, str) else ""))
        else:
            texts.append(block(part))
    only = texts[0] if len(texts) == 1 else None
    display: Any = call.get("resultDisplay")
    if isinstance(display, str) and texts and isinstance(texts[0], Text) and texts[0].text.startswith(display):
        display = None  # it only says the same again
    return ToolResult(
        call=id,
        name=text(call.get("name")),
        content=only.text if isinstance(only, Text) else texts,
        is_error=is_error,
        details=display,
    )


def usage_of(tokens: dict[str, Any]) -> Usage | None:
    """Gemini's input includes what was cached; thoughts and tool input are counted separately."""
    if not tokens:
        return None
    cached, thoughts = count(tokens.get("cached")), count(tokens.get("thoughts"))
    return Usage(
        input_tokens=max(0, count(tokens.get("input")) - cached) + count(tokens.get("tool")),
        cache_read_tokens=cached,
        output_tokens=count(tokens.get("output")) + thoughts,
        reasoning_tokens=thoughts,
    )


def question(blocks: list[AnyBlock], other: Any, at: datetime | None) -> Message:
    """What people said, and what they were shown of it."""
    display: Any = None
    display_blocks = said(other)[0] if other is not None else []
    if is_aside(blocks):
        display = False
    elif display_blocks and display_blocks != blocks:
        display = "\n".join(getattr(block, "text", "") for block in display_blocks)
    return Message(id="-", role="user", blocks=blocks, at=at, display=display)


def meaning(entries: list[tuple[str, Message | Note]]) -> bytes:
    """What tells a message from another version of it, however it is written down: reasoning is no part of it."""
    sayings: list[Any] = []
    for _, entry in entries:
        for item in entry.blocks if isinstance(entry, Message) else ():
            if isinstance(item, ToolCall):
                sayings.append([item.id, item.name, item.input])
            elif isinstance(item, Text):
                sayings += [item.text] if item.text else []
            elif not isinstance(item, Thinking):
                sayings.append(item if not isinstance(item, ToolResult) else [item.call, item.content])
    return sha256(msgspec.json.encode(sayings, order="deterministic")).digest()


def digest(raw: dict[str, Any]) -> bytes:
    """What tells a record from others."""
    return sha256(msgspec.json.encode(raw, order="deterministic")).digest()
