"""What Gemini CLI stores of a message, as blocks: that of usual lines by their types, that of any other as it comes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.json import Decoder

from turnlog.formats._shared.geminiparts import block, parts_of, response, split_results
from turnlog.interop.records import Moment, Tokens
from turnlog.interop.value import fields, items, moment, text, token_count
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Message, Note
from turnlog.log.usage import Usage
from turnlog.wire import gemini


class _Part(Struct, forbid_unknown_fields=True, gc=False):
    text: str


class _Output(Struct, gc=False):
    output: str


class _Response(Struct, gc=False):
    response: _Output
    id: str | None = None


class _FunctionResponsePart(Struct, gc=False):
    """A part that is what a tool answered, as text."""

    response: _Response = field(name="functionResponse")


class _Call(Struct, gc=False):
    """A tool that was called, and what it answered."""

    id: Annotated[str, Meta(min_length=1)]
    name: str | None = None
    args: Any = None
    status: str | None = None
    result: list[_FunctionResponsePart] | None = None
    shown: Any = field(default=None, name="resultDisplay")
    timestamp: str | None = None


class _Tokens(Struct, gc=False):
    input: Tokens
    output: Tokens = 0
    cached: Tokens = 0
    thoughts: Tokens = 0
    tool: Tokens = 0


class _Thought(Struct, gc=False):
    subject: str = ""
    description: str = ""


class GeminiUserLine(Struct, tag_field="type", tag="user", gc=False):
    """A usual line of what people said."""

    timestamp: Moment
    content: list[_Part]
    shown: Any = field(default=None, name="displayContent")


class GeminiAnswerLine(Struct, tag_field="type", tag="gemini", gc=False):
    """A usual line of what the model said, complete."""

    timestamp: Moment
    content: str
    tokens: _Tokens
    calls: list[_Call] = field(default_factory=list[_Call], name="toolCalls")
    thoughts: list[_Thought] | None = None
    model: str | None = None


decode_line = Decoder(GeminiUserLine | GeminiAnswerLine).decode


PROVIDER = "gemini"
_FAILED = ("error", "cancelled")
_DONE = ("success", *_FAILED)
_ASIDE = ("<session_context>", "<hook_context>")
"""How a text in the user's place begins that the program puts there itself."""


def is_aside(blocks: list[AnyBlock]) -> bool:
    """Whether a message came from the program, and people do not see it."""
    first = blocks[0] if blocks else None
    return isinstance(first, Text) and first.text.lstrip().startswith(_ASIDE)


def messages_of_line(line: GeminiAnswerLine) -> tuple[Message, Message | None]:
    """A complete answer of the usual kind, and what the tools that it called answered."""
    blocks: list[AnyBlock] = [_thinking(one.subject, one.description) for one in line.thoughts or ()]
    results: list[AnyBlock] = []
    results_at: datetime | None = None
    if line.content:
        blocks.append(Text(text=line.content))
    for call in line.calls:
        blocks.append(ToolCall(id=call.id, name=call.name or "", input=call.args))
        parts = call.result or []
        if len(parts) > 1:  # each of several at once may hold what all of them answered
            parts = [part for part in parts if part.response.id in (None, call.id)] or parts
        if parts or call.status in _DONE:
            texts: list[AnyBlock] = [Text(part.response.response.output) for part in parts]
            results.append(_result(call.id, call.name, call.status, texts, call.shown))
        if call.timestamp is not None:
            results_at = _later(results_at, moment(call.timestamp))
    answer = _answer(blocks, line.model, _usage(line.tokens), line.timestamp, is_call=bool(line.calls))
    return answer, _results(results, results_at or line.timestamp)


def messages_of_record(record: dict[str, Any]) -> tuple[Message, Message | None]:
    """The same of an answer of any kind."""
    content, blocks, is_whole = record.get("content"), list[AnyBlock](), False
    if isinstance(content, str):
        blocks += [Text(text=content)] if content else []
    else:
        parts = [part for part in parts_of(content) if "functionResponse" not in part]
        raw = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        blocks += gemini.draft({"candidates": [raw], "responseId": record.get("id")}).blocks
        # Calls and thoughts stand among the parts.
        is_whole = any("functionCall" in part or part.get("thought") for part in parts)
    if not is_whole:
        names = ("subject", "description")
        thoughts = items(record.get("thoughts"))
        blocks[:0] = [_thinking(*(str(one.get(name) or "") for name in names)) for one in thoughts]
    results: list[AnyBlock] = []
    results_at: datetime | None = None
    for index, call in enumerate(items(record.get("toolCalls"))):
        id, name = text(call.get("id")) or f"{record.get('id')}-{index}", str(call.get("name") or "")
        if not is_whole:
            blocks.append(ToolCall(id=id, name=name, input=call.get("args")))
        output, status = _output_of(call)
        if output or status in _DONE:
            results.append(_result(id, name, status, output, call.get("resultDisplay")))
        results_at = _later(results_at, moment(call.get("timestamp")))
    at, tokens = moment(record.get("timestamp")), fields(record.get("tokens"))
    usage = _usage(_Tokens(*(token_count(tokens.get(name)) for name in _Tokens.__struct_fields__))) if tokens else None
    is_call = any(isinstance(block, ToolCall) for block in blocks)
    answer = _answer(blocks, text(record.get("model")), usage, at, is_call=is_call)
    return answer, _results(results, results_at or at)


def _answer(
    blocks: list[AnyBlock], model: str | None, usage: Usage | None, at: datetime | None, *, is_call: bool
) -> Message:
    model = None if model == "unknown" else model or None
    stop = "tool_use" if is_call else "end"
    return Message(id="-", role="assistant", blocks=blocks, model=model, usage=usage, stop=stop, at=at)


def _results(results: list[AnyBlock], at: datetime | None) -> Message | None:
    return Message(id="-", role="tool", blocks=results, at=at) if results else None


def _output_of(raw: dict[str, Any]) -> tuple[list[AnyBlock], str | None]:
    """What a tool answered, and its status."""
    parts, status = parts_of(raw.get("result")), raw.get("status")
    own = [part for part in parts if fields(part.get("functionResponse")).get("id") in (None, raw.get("id"))]
    blocks: list[AnyBlock] = []
    for part in own or parts:
        if "functionResponse" in part:
            answer = response(fields(part["functionResponse"]))
            status = "error" if answer.is_error else status
            blocks.append(Text(text=str(answer.content)))
        else:
            blocks.append(block(part))
    return blocks, "success" if raw.get("result") and status not in _FAILED else status


def _thinking(subject: str, description: str) -> Thinking:
    return Thinking(text="\n".join([words for words in (subject, description) if words]), provider=PROVIDER)


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    """Results are there when the last of them is."""
    return second if first is None or (second is not None and second > first) else first


def _usage(tokens: _Tokens) -> Usage:
    """Input includes what was cached; thoughts and tool input are counted separately."""
    cached, thoughts = tokens.cached, tokens.thoughts
    fresh = (tokens.input - cached if tokens.input > cached else 0) + tokens.tool
    return Usage(fresh, cached, output_tokens=tokens.output + thoughts, reasoning_tokens=thoughts)


def _result(id: str, name: str | None, status: str | None, blocks: list[AnyBlock], shown: Any) -> ToolResult:
    first = blocks[0] if blocks else None
    if isinstance(shown, str) and type(first) is Text and first.text.startswith(shown):
        shown = None  # it only says the same again
    content = first.text if len(blocks) == 1 and type(first) is Text else blocks
    return ToolResult(call=id, name=name or None, content=content, is_error=status in _FAILED, details=shown)


def prompt(blocks: list[AnyBlock], other: Any, at: datetime | None) -> Message:
    """What people said, and what they were shown of it."""
    display: Any = None
    display_blocks = split_results(other)[0] if other is not None else []
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
