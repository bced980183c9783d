"""Messages of pi, as entries."""

from __future__ import annotations

import binascii
from base64 import b64decode
from datetime import datetime
from typing import Any, cast

from turnlog.formats._shared.json import decode
from turnlog.formats._shared.tally import unknown
from turnlog.formats._shared.value import count, fields, items, text
from turnlog.formats.pi.line import CallPart, PiAnswered, PiAsked, PiCounts, PiTold, TextPart, ThinkingPart
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Custom, Entry, Message, Stop
from turnlog.log.usage import Usage

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
}
_PROVIDERS = {"anthropic": "anthropic", "openai": "openai", "google": "gemini"}


def said(raw: PiAsked | PiAnswered | PiTold, at: datetime | None) -> Message:
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
    if type(raw) is PiAsked:
        return Message(id="-", role="user", blocks=[Text(text=part.text) for part in raw.content], at=at)
    answer = cast("PiAnswered", raw)
    provider, spent = _provider(answer.api, answer.provider), answer.usage
    blocks: list[AnyBlock] = []
    for part in answer.content:
        if type(part) is TextPart:
            blocks.append(Text(text=part.text))
        elif type(part) is CallPart:
            blocks.append(ToolCall(id=str(part.id or ""), name=str(part.name or ""), input=part.arguments))
        else:
            thought = cast("ThinkingPart", part)
            data = _signature(thought.signature, thought.redacted, provider)
            blocks.append(Thinking(text=str(thought.thinking or ""), provider=provider, data=data))
    meta: dict[str, Any] = {}
    if text(answer.api):
        meta["api"] = answer.api
    if text(answer.provider):
        meta["provider"] = answer.provider
    error = text(answer.error)
    return Message(
        id="-",
        role="assistant",
        blocks=blocks,
        model=None if answer.model == "unknown" else text(answer.model),
        usage=_spent(spent) if spent is not None else None,
        stop=_STOPS.get(str(answer.stop)),
        error={"message": error} if error else None,
        meta=meta or None,
        at=at,
    )


def _spent(raw: PiCounts) -> Usage:
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
        error = text(raw.get("errorMessage"))
        return Message(
            id="-",
            role="assistant",
            blocks=[_answer(part, provider) for part in items(raw.get("content"))],
            model=None if raw.get("model") == "unknown" else text(raw.get("model")),
            usage=usage_of(fields(raw.get("usage"))),
            stop=_STOPS.get(str(raw.get("stopReason"))),
            error={"message": error} if error else None,
            meta={key: raw[key] for key in ("api", "provider") if text(raw.get(key))} or None,
        )
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
        told = f"Ran `{raw.get('command')}`\n{raw.get('output') or ''}".rstrip()
        return Custom(kind="pi.bash", data=about, blocks=[] if raw.get("excludeFromContext") else [Text(text=told)])
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
    if part.get("type") == "image" and isinstance(part.get("data"), str):
        try:
            return Image(media_type=text(part.get("mimeType")), data=b64decode(part["data"], validate=True))
        except (binascii.Error, ValueError):
            return unknown("pi", part)
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
    get = raw.get
    cost = fields(get("cost")).get("total")
    return Usage(
        input_tokens=count(get("input")),
        cache_read_tokens=count(get("cacheRead")),
        cache_write_tokens=count(get("cacheWrite")),
        output_tokens=count(get("output")),
        cost_micros=round(cost * 1_000_000) if isinstance(cost, (int, float)) and 0 < cost < 1e9 else None,
    )
