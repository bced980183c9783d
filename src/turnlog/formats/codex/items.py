"""Response items as messages and results. What a model answered, `turnlog.wire` knows."""

from __future__ import annotations

import re
from operator import sub
from typing import Any

from msgspec import UNSET, DecodeError, Struct
from msgspec.json import Decoder
from msgspec.structs import astuple, force_setattr

from turnlog.formats._shared.foreign import linked, unknown
from turnlog.formats._shared.json import decode
from turnlog.formats._shared.value import count, fields, items, json_text, text
from turnlog.formats.codex.heading import NAME
from turnlog.formats.codex.line import INTERNAL, CodexCall, CodexInfo, CodexTalk, Reasoning
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Message, Role
from turnlog.log.text import pattern
from turnlog.log.usage import Usage
from turnlog.wire import openai, tagged
from turnlog.wire.openai.part import input_of

ANSWERS = frozenset((
    "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call", "compaction", "context_compaction",
))  # fmt: skip
OUTPUTS = frozenset(
    ("function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output")
)
_ASIDE = ("<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md instructions")
"""How messages begin that the program puts in for the model, and people do not see."""


def answered(output: list[dict[str, Any]]) -> Message:
    """What one response said, as one message."""
    ours = [_shell(item) if item.get("type") == "local_shell_call" else item for item in output]
    drafted = openai.draft({"output": ours})
    force_setattr(drafted, "id", "-")
    spaces = {item.get("call_id"): meta for item in output if (meta := _space(item)) is not None}
    for block in drafted.blocks if spaces else ():
        if isinstance(block, ToolCall) and block.id in spaces:
            force_setattr(block, "meta", spaces[block.id])
    return drafted


def _space(item: dict[str, Any]) -> dict[str, Any] | None:
    """Where a tool belongs that has more than a name."""
    named = item.get("namespace")
    return {"openai": {"namespace": named}} if isinstance(named, str) and named else None


def _shell(item: dict[str, Any]) -> dict[str, Any]:
    """A shell call of the provider's own kind, which Codex runs: a call like any other."""
    return {
        "type": "function_call", "call_id": item.get("call_id") or item.get("id"), "name": "local_shell",
        "arguments": json_text(item.get("action")),
    }  # fmt: skip


def thought(item: Reasoning) -> AnyBlock:
    """Reasoning that the model alone can read, or also people."""
    named = {
        "id": item.id, "summary": item.summary, "content": item.content,
        "encrypted_content": item.encrypted_content, INTERNAL: item.internal,
    }  # fmt: skip
    kept = {name: value for name, value in named.items() if value is not UNSET}
    words = ""
    if item.summary or item.content:
        parts = items(item.summary) or items(item.content)
        words = "\n\n".join([str(part.get("text") or "") for part in parts])
    return Thinking(text=words, provider="openai", data={"item": kept})


def called(item: CodexCall) -> ToolCall:
    """A call of the usual kind."""
    meta = None
    if item.namespace is not None:
        meta = {"openai": {"namespace": item.namespace}} if text(item.namespace) else None
    try:
        given = _decode(item.arguments)
    except DecodeError:
        given = input_of(item.arguments)
    return ToolCall(id=item.call_id, name=item.name, input=given, meta=meta)


_decode = Decoder().decode


def spoken(item: CodexTalk) -> list[AnyBlock]:
    """What the model said."""
    blocks: list[AnyBlock] = []
    for part in item.content:
        if part.text:
            meta = None
            if item.phase or part.annotations:
                meta = tagged("openai", {"phase": item.phase, "annotations": part.annotations}, None)
            blocks.append(Text(text=part.text, meta=meta))
    return blocks


def said(item: dict[str, Any]) -> Message:
    """A message that did not come from the model."""
    role = "user" if item.get("role") == "user" else "system"
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else items(content)
    return message(role, [_block(part) for part in parts])


def message(role: Role, blocks: list[AnyBlock]) -> Message:
    """A message that did not come from the model, and whether people see it."""
    first = blocks[0].text if blocks and isinstance(blocks[0], Text) else ""
    return Message(id="-", role=role, blocks=blocks, display=False if role == "user" and is_aside(first) else None)


def is_aside(text: str) -> bool:
    """Whether a message in the user's place came from the program, and people do not see it."""
    return text.lstrip().startswith(_ASIDE)


def _block(part: dict[str, Any]) -> AnyBlock:
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text") and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    url = part.get("image_url")
    if kind == "input_image" and isinstance(url, str):
        return linked(Image, url) or unknown(NAME, part)
    return unknown(NAME, part)


def result(item: dict[str, Any]) -> ToolResult:
    """What a tool answered."""
    output: Any = item.get("output") if "output" in item else item.get("tools")
    is_error = False
    content: str | list[AnyBlock]
    if isinstance(output, str):
        content = output
        is_error = failed(output)
    elif isinstance(output, dict):  # {"content": …, "success": …}
        about = fields(output)
        inner = about.get("content")
        content = inner if isinstance(inner, str) else json_text(inner)
        is_error = about.get("success") is False
    elif item.get("type") in ("function_call_output", "custom_tool_call_output"):
        content = [_block(part) for part in items(output)]
    else:
        content = json_text(output)
    call = str(item.get("call_id") or item.get("id") or "")
    return ToolResult(call=call, content=content, is_error=is_error)


TOLD = ('{"output":', '{"metadata":', "Chunk ID: ", "Exit code: ")
_EXITED = pattern(r"^Process exited with code (\d+)$", re.MULTILINE)


def failed(output: str) -> bool:
    """The shell's results are JSON with an exit code, or begin with a line that tells it."""
    if output.startswith('{"output":') or output.startswith('{"metadata":'):
        try:
            about = fields(fields(decode(output.encode("utf-8", "replace"))).get("metadata"))
        except ValueError:
            return False
        return bool(count(about.get("exit_code")))
    if output.startswith("Chunk ID: "):
        code = _EXITED.search(output, 0, 300)
        return code is not None and code[1] != "0"
    if output.startswith("Exit code: "):
        return not output.startswith("Exit code: 0")
    return False


_Five = tuple[int, int, int, int, int]
_NOTHING: _Five = (0, 0, 0, 0, 0)


class CodexState(Struct, omit_defaults=True):
    """What is known at a mark."""

    counted: _Five
    last: str = ""
    model: str | None = None
    turn: str | None = None
    begun: str | None = None
    title: str | None = None
    keys: dict[str, int] = {}
    facts: dict[str, Any] = {}


START = CodexState(_NOTHING)


class Meter:
    """The running totals of a session as the spending of each response."""

    def __init__(self, now: _Five = _NOTHING) -> None:
        self.now = now

    def spent(self, info: dict[str, Any]) -> Usage | None:
        """What was spent since the last count; None if that is nothing new."""
        total, last = fields(info.get("total_token_usage")), fields(info.get("last_token_usage"))
        if not total:
            raw = last or {"input_tokens": info.get("prompt"), "output_tokens": info.get("completion")}
            return usage_of(raw)
        now, before = _counts(total), self.now
        if now == before:
            return None
        self.now = now
        more = tuple(map(sub, now, before))
        return _usage(*(more if min(more) >= 0 else _counts(last)))  # otherwise it began to count anew

    def counted(self, info: CodexInfo) -> Usage | None:
        """The same of a usual count."""
        total, (given, cached, written, out, thought) = info.total_token_usage, self.now
        now = self.now = (
            total.input_tokens,
            total.cached_input_tokens,
            total.cache_write_input_tokens,
            total.output_tokens,
            total.reasoning_output_tokens,
        )
        given, cached, written = now[0] - given, now[1] - cached, now[2] - written
        out, thought = now[3] - out, now[4] - thought
        if given < 0 or cached < 0 or written < 0 or out < 0 or thought < 0:  # it began to count anew
            return _usage(*(astuple(info.last_token_usage) if info.last_token_usage is not None else _NOTHING))
        return _usage(given, cached, written, out, thought)


def usage_of(raw: dict[str, Any]) -> Usage | None:
    """Codex counts cached input as input, and reasoning as output."""
    return _usage(*_counts(raw))


def _counts(raw: dict[str, Any]) -> _Five:
    get = raw.get
    return (
        count(get("input_tokens")),
        count(get("cached_input_tokens")),
        count(get("cache_write_input_tokens")),
        count(get("output_tokens")),
        count(get("reasoning_output_tokens")),
    )


def _usage(given: int, cached: int, written: int, out: int, thought: int) -> Usage | None:
    if not given and not out:
        return None
    fresh = given - cached - written
    return Usage(fresh if fresh > 0 else 0, cached, written, 0, out, thought)


def sealed(history: list[dict[str, Any]], summary: str) -> Message | None:
    """What OpenAI made of a conversation and alone can read; None where the program summed it up itself."""
    if not any(item.get("type") == "compaction" and item.get("encrypted_content") for item in history):
        return None
    window = [item for item in history if item.get("type") != "ghost_snapshot"]
    block = Thinking(text=summary, provider="openai", data={"compaction": window})
    return Message(id="-", role="assistant", blocks=[block])


def messages(history: list[dict[str, Any]]) -> list[Message]:
    """Response items as messages: those in a row that the model said are one."""
    messages: list[Message] = []
    output: list[dict[str, Any]] = []
    for item in [*history, {}]:
        kind = item.get("type")
        if kind in ANSWERS or (kind == "message" and item.get("role") == "assistant"):
            output.append(item)
            continue
        if output:
            messages.append(answered(output))
            output = []
        if kind == "message":
            messages.append(said(item))
        elif kind in OUTPUTS:
            messages.append(Message(id="-", role="tool", blocks=[result(item)]))
    return messages
