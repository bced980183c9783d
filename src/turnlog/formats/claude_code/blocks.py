"""Blocks of Claude Code that people send: text, pictures, documents. What models answer, `turnlog.wire` knows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import UNSET

from turnlog.formats._shared.value import count, fields, items
from turnlog.formats.claude_code.line import ClaudeSaid
from turnlog.log.block import WRAPPED, AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Message, Stop
from turnlog.log.usage import Usage

CLEARED = "[Old tool result content cleared]"
"""What the model is told in the place of a result that Claude Code no longer sends."""


def block(raw: dict[str, Any]) -> AnyBlock:
    """One block of a user's message or of a tool's result."""
    if raw.get("type") == "text" and isinstance(raw.get("text"), str):
        return Text(text=raw["text"])
    from turnlog.formats._shared.tally import unknown  # most are texts, and wait for nothing else
    from turnlog.wire.anthropic.item import media

    return media(raw) or unknown("claude-code", raw)


def result(raw: dict[str, Any], details: Any) -> ToolResult:
    """What a tool answered."""
    content = raw.get("content")
    return ToolResult(
        call=str(raw.get("tool_use_id") or ""),
        content=content if isinstance(content, str) else [block(inner) for inner in items(content)],
        is_error=raw.get("is_error") is True,
        details=details,
    )


_STOPS: dict[str, Stop] = {"end_turn": "end", "tool_use": "tool_use", "max_tokens": "length"}


def plain_answer(
    message: ClaudeSaid,
    ending: dict[str, Any],
    content: list[dict[str, Any]],
    usage: dict[str, Any],
    at: datetime | None,
) -> Message | None:
    """An API message of the usual kind, as `turnlog.wire` would read it, in less time; None for any other.

    Most of a transcript is of that kind, and reading should take little longer than decoding.
    """
    reason = ending.get("stop_reason") if ending else None if message.stop_reason is UNSET else message.stop_reason
    model, id = message.model, message.id
    is_usual = reason is None or (type(reason) is str and reason in _STOPS)
    if not is_usual or type(model) is not str or type(id) is not str:
        return None
    blocks: list[AnyBlock] = []
    for raw in content:
        kind, size = raw.get("type"), len(raw)
        if kind == "text" and size == 2 and type(raw.get("text")) is str:
            blocks.append(Text(text=raw["text"]))
        elif kind == "tool_use" and size == 4 and type(raw.get("input")) is dict and WRAPPED not in raw["input"]:
            blocks.append(ToolCall(id=str(raw.get("id") or ""), name=str(raw.get("name") or ""), input=raw["input"]))
        elif kind == "thinking" and size == 3 and raw.get("signature") and type(raw.get("thinking")) is str:
            data = {"signature": raw["signature"]}
            blocks.append(Thinking(text=raw["thinking"], provider="anthropic", data=data))
        else:
            return None
    return Message(
        id="-",
        role="assistant",
        blocks=blocks,
        model=None if model == "<synthetic>" else model,
        request=id,
        usage=_spent(usage) if usage else None,
        stop=_STOPS[reason] if reason else None,
        at=at,
    )


def _spent(raw: dict[str, Any]) -> Usage:
    get = raw.get
    written, made = count(get("cache_creation_input_tokens")), get("cache_creation")
    hour = thought = 0
    if made:
        hour = count(fields(made).get("ephemeral_1h_input_tokens"))
        written = max(written, hour + count(fields(made).get("ephemeral_5m_input_tokens")))
    if "output_tokens_details" in raw:
        thought = count(fields(get("output_tokens_details")).get("thinking_tokens"))
    return Usage(
        count(get("input_tokens")),
        count(get("cache_read_input_tokens")),
        written - hour,
        hour,
        count(get("output_tokens")),
        thought,
    )


_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def larger(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The usage of an API message of which several records tell: while it streams, its output grows."""
    if not one:
        return other
    if sum(count(other.get(name)) for name in _USAGE) >= sum(count(one.get(name)) for name in _USAGE):
        return other or one
    return one
