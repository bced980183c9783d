"""Blocks of Claude Code: what people send, tools answer, and models say.

The usual ones are read here, in the shortest way; all others as `turnlog.wire` reads them, which few sessions load.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from msgspec.structs import replace

from turnlog.interop.value import fields, items, token_count
from turnlog.log.block import WRAPPED, AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Stop
from turnlog.log.usage import Usage

CLEARED = "[Old tool result content cleared]"
"""What the model is told in the place of a result that Claude Code no longer sends."""
_STOPS: dict[str, Stop] = {"end_turn": "end", "tool_use": "tool_use", "max_tokens": "length"}


def block(raw: dict[str, Any]) -> AnyBlock:
    """One block of a user's message or of a tool's result."""
    if raw.get("type") == "text" and isinstance(raw.get("text"), str):
        return Text(text=raw["text"])
    from turnlog.formats._shared.blocks import unknown
    from turnlog.wire.anthropic.item import media

    return media(raw) or unknown("claude-code", raw)


def parts_of(content: Any) -> list[dict[str, Any]]:
    """Content is text, or a list of blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else items(content)


def result(raw: dict[str, Any], details: Any) -> ToolResult:
    """What a tool answered."""
    content = raw.get("content")
    return ToolResult(
        call=str(raw.get("tool_use_id") or ""),
        content=content if isinstance(content, str) else [block(inner) for inner in items(content)],
        is_error=raw.get("is_error") is True,
        details=details,
    )


def cleared(blocks: Sequence[AnyBlock], calls: Container[str]) -> list[AnyBlock]:
    """The blocks of a message in which the results of these calls are cleared."""
    return [
        replace(part, content=CLEARED, details=None) if isinstance(part, ToolResult) and part.call in calls else part
        for part in blocks
    ]


def answer(raw: dict[str, Any]) -> AnyBlock:
    """One block of a model's."""
    kind, size = raw.get("type"), len(raw)
    if kind == "text" and size == 2 and type(raw.get("text")) is str:
        return Text(text=raw["text"])
    if kind == "tool_use" and size == 4 and type(raw.get("input")) is dict and WRAPPED not in raw["input"]:
        return ToolCall(id=str(raw.get("id") or ""), name=str(raw.get("name") or ""), input=raw["input"])
    if kind == "thinking" and size == 3 and raw.get("signature") and type(raw.get("thinking")) is str:
        return Thinking(text=raw["thinking"], provider="anthropic", data={"signature": raw["signature"]})
    from turnlog.wire.anthropic.answer import answered_block

    return answered_block(raw, {}, None)


def stopped(reason: Any, error: Any, details: Any) -> tuple[Stop | None, dict[str, Any] | None]:
    """How an answer ended, if anybody says, and the error if it failed or was refused."""
    if not error and (not reason or (type(reason) is str and reason in _STOPS)):
        return _STOPS[reason] if reason else None, None
    from turnlog.wire.anthropic import answer as wire

    end = wire.ending_of(reason, error, details)
    return end.stop if reason else None, end.error


def usage_of(raw: dict[str, Any]) -> Usage:
    """What a request cost."""
    get, by_duration = raw.get, fields(raw.get("cache_creation"))
    if get("iterations"):  # of a request in which the API compacted: what that took counts, too
        from turnlog.wire.anthropic import answer as wire

        return wire.usage_of(raw)
    written, hour = token_count(get("cache_creation_input_tokens")), 0
    if by_duration:
        hour = token_count(by_duration.get("ephemeral_1h_input_tokens"))
        written = max(written, hour + token_count(by_duration.get("ephemeral_5m_input_tokens")))
    thoughts = fields(get("output_tokens_details")).get("thinking_tokens") if "output_tokens_details" in raw else 0
    return Usage(
        input_tokens=token_count(get("input_tokens")),
        cache_read_tokens=token_count(get("cache_read_input_tokens")),
        cache_write_tokens=written - hour,
        cache_write_1h_tokens=hour,
        output_tokens=token_count(get("output_tokens")),
        reasoning_tokens=token_count(thoughts),
    )


_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def newer_usage(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The later of two usages that records of one API message have: while it streams, its output grows."""
    if not before:
        return now
    is_more = sum(token_count(now.get(key)) for key in _USAGE) >= sum(token_count(before.get(key)) for key in _USAGE)
    return now if now and is_more else before
