"""Messages of rho as entries, and entries as messages of rho.

What an entry cannot say is in its `origin`; a message that still would not come back to the byte is there whole.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from turnlog.formats._shared.json import decode, from_base64
from turnlog.formats._shared.rust import by_key, compact
from turnlog.formats._shared.tally import Tally
from turnlog.formats._shared.value import counted, fields, listed
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import INTERRUPTED, text_of
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

NAME = "rho"
Json = dict[str, Any]
BLOCK, MESSAGE, CONTEXT, CALL = "rho.block", "rho.message", "rho.context", "rho.call"
"""Kinds of blocks: what we do not know, opaque data of a provider, a call that never was complete."""
THOUGHT = "turnlog.thinking"
"""Our reasoning inside rho's opaque data."""


class RhoTally(Tally):
    """Loss tally with blob access, used while messages are encoded."""

    is_rich = False
    """Whether this rho knows pictures, reasoning, and who gave a response or broke it off; the first does not."""


def origin_of(value: Any) -> Json | None:
    """What an entry brought along from rho; None for one that never was there."""
    origin = fields(getattr(value, "origin", None))
    return origin if origin.get("agent") == NAME else None


def hear(raw: Any, at: datetime | None = None, **origin: Any) -> Message:
    """A message of rho as an entry. Never fails: what is not understood is kept as it is."""
    try:
        message, more = _hear(raw)
    except (KeyError, TypeError, ValueError, AttributeError):
        block = _kept(MESSAGE, raw)
        return Message(role="user", blocks=[block], at=at, origin={"agent": NAME, **origin, "message": raw})
    heard = Message(**message, at=at, origin={"agent": NAME, **origin, **more})
    # What differs in its letters only, such as the order of keys, shows when the whole line is compared.
    if tell(heard, RhoTally())[0] != raw:
        heard.origin["message"] = raw
    return heard


def text_shown(raw: Any) -> str | None:
    """The text of a message as people see it."""
    try:
        message, _ = _hear(raw)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return text_of(message["blocks"])


def _hear(raw: Any) -> tuple[Json, Json]:
    ((kind, inner),) = cast("Json", raw).items()
    if kind == "System":
        return {"role": "system", "blocks": [Text(text=as_text(inner))]}, {}
    if kind in ("User", "Assistant"):
        return {"role": kind.lower(), "blocks": [_block(block) for block in inner]}, {}
    if kind == "ToolResult":
        result = ToolResult(
            call=as_text(inner["id"]), content=as_text(inner["content"]), is_error=inner["ok"] is not True
        )
        return {"role": "tool", "blocks": [result]}, {}
    if kind not in ("EnrichedAssistant", "AbortedAssistant"):
        raise KeyError(kind)
    more: Json = {"as": "enriched" if kind == "EnrichedAssistant" else "aborted"}
    message: Json = {"role": "assistant"}
    maker = inner.get("provenance")
    provider = None
    if maker is not None:
        provider, message["model"] = as_text(maker["provider"]), as_text(maker["model"])
        more["by"] = [provider, maker["api"]]
    if "portable_fallback" in inner:
        more["fallback"] = inner["portable_fallback"]
    blocks = _thoughts(inner, provider, more) + [_block(block) for block in inner["content"]]
    for context in inner.get("provider_context", []):
        if context["kind"] != THOUGHT:
            blocks.append(_kept(CONTEXT, context))
    if kind == "AbortedAssistant":
        message["stop"] = "aborted"
        blocks += [_kept(CALL, call) for call in inner["tool_calls"]]
        message["usage"] = _usage(inner["usage"])
        if _told_usage(message["usage"]) != inner["usage"]:
            more["usage"] = inner["usage"]
    return {**message, "blocks": blocks}, more


def _thoughts(inner: Json, provider: str | None, more: Json) -> list[AnyBlock]:
    ours = [context["data"] for context in inner.get("provider_context", []) if context["kind"] == THOUGHT]
    if ours:
        return [Thinking(text=as_text(t["text"]), provider=t["provider"], data=t["data"]) for t in ours]
    thoughts: list[AnyBlock] = []
    if inner.get("reasoning"):
        more["raw"] = True
        thoughts.append(Thinking(text=as_text(inner["reasoning"]), provider=provider))
    if "reasoning_summary" in inner:
        thoughts.append(Thinking(text=as_text(inner["reasoning_summary"]), provider=provider))
    return thoughts


def _block(block: Json) -> AnyBlock:
    ((kind, inner),) = block.items()
    if kind == "Text" and isinstance(inner, str):
        return Text(text=inner)
    if kind == "Image" and (data := from_base64(inner["data"])) is not None:
        return Image(media_type=as_text(inner["mime_type"]), data=data)
    if kind == "ToolCall" and isinstance(inner["id"], str) and isinstance(inner["name"], str):
        return ToolCall(id=inner["id"], name=inner["name"], input=inner["arguments"])
    return _kept(BLOCK, block)


def _kept(kind: str, value: Any) -> UnknownBlock:
    """Something of rho's that no block of ours can say. The log wants a type in it."""
    return UnknownBlock(kind=kind, json=compact({"type": kind, "rho": value}).decode())


def _given(block: UnknownBlock) -> Any:
    return decode(block.json.encode())["rho"]


def as_text(value: Any) -> str:
    """That value, which has to be text."""
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _usage(counts: Json) -> Usage:
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    cost = counts.get("cost_usd_micros")
    tokens = {name: counted(counts.get(name)) or 0 for name in names}
    return Usage(**tokens, cost_micros=None if cost is None else counted(cost) or 0)


def tell(message: Message, ear: RhoTally) -> list[Json]:
    """An entry as messages of rho: one, unless a tool message holds several results."""
    origin = origin_of(message)
    if origin is not None and "message" in origin:
        return [origin["message"]]
    if message.role == "system":
        return [{"System": text_of(message.blocks)}]
    if message.role == "tool":
        return _results(message, ear)
    if message.role == "user":
        parts = _content(message, ear)
        return [{"User": parts}] if parts or origin is not None else []
    kind = _kind(message, ear) if origin is None else origin.get("as", "plain")
    if origin is None and message.usage is not None and kind != "aborted":
        ear.add("usage of a message")
    content = _content(message, ear)
    if kind == "plain":
        return [{"Assistant": content}] if content or origin is not None else []  # all of it is reported as lost
    record: Json = {"content": content}
    thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
    if kind == "aborted":
        record["reasoning"] = thoughts.pop(0).text if (origin or {}).get("raw") and thoughts else ""
    by = _maker(message, origin, thoughts)
    if by is not None:
        record["provenance"] = by
    if thoughts:
        record["reasoning_summary"] = "\n\n".join(thought.text for thought in thoughts)
    if origin is not None and "fallback" in origin:
        record["portable_fallback"] = origin["fallback"]
    contexts = _contexts(message, thoughts, by)
    if contexts:
        record["provider_context"] = contexts
    if kind == "enriched":
        return [{"EnrichedAssistant": record}]
    record["tool_calls"] = [_given(block) for block in _unknown(message, CALL)]
    record["usage"] = (origin or {}).get("usage", _told_usage(message.usage or Usage()))
    return [{"AbortedAssistant": record}]


def _kind(message: Message, ear: RhoTally) -> str:
    is_aborted = message.stop == "aborted" and not any(isinstance(block, ToolCall) for block in message.blocks)
    if is_aborted and ear.is_rich:
        return "aborted"
    thoughts = sum(isinstance(block, Thinking) for block in message.blocks)
    if ear.is_rich and (thoughts or message.model):
        return "enriched"
    ear.add("reasoning", "", thoughts)
    if message.model:
        ear.add("model of a message")
    if is_aborted:
        ear.add("broken-off response", "a whole one")
    return "plain"


def _maker(message: Message, origin: Json | None, thoughts: list[Thinking]) -> Json | None:
    by = (origin or {}).get("by")
    if by is None and (origin is not None or not message.model):
        return None
    provider = next((thought.provider for thought in thoughts if thought.provider), "unknown")
    provider, api = by if by is not None else (provider, "unknown")
    return {"provider": provider, "api": api, "model": message.model}


def _contexts(message: Message, thoughts: list[Thinking], by: Json | None) -> list[Json]:
    contexts = [_given(block) for block in _unknown(message, CONTEXT)]
    if any(thought.data is not None for thought in thoughts):
        # An api that no provider has: rho keeps this and never sends it.
        identity = by or {"provider": "unknown", "api": "unknown", "model": "unknown"}
        for thought in thoughts:
            data = by_key({"text": thought.text, "provider": thought.provider, "data": thought.data})
            contexts.append({"identity": identity, "kind": THOUGHT, "data": data})
    return contexts


def _unknown(message: Message, kind: str) -> list[UnknownBlock]:
    return [block for block in message.blocks if isinstance(block, UnknownBlock) and block.kind == kind]


def _told_usage(usage: Usage) -> Json:
    """Counts as rho writes them, where none and zero are one."""
    total = usage.all_input_tokens + usage.output_tokens
    counts = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens + usage.cache_write_1h_tokens,
        "total_tokens": total,
        "context_window": None,
        "cost_usd_micros": usage.cost_micros,
    }
    return {name: value or (value if name == "cost_usd_micros" else None) for name, value in counts.items()}


def _content(message: Message, ear: RhoTally) -> list[Json]:
    content: list[Json] = []
    is_ours = origin_of(message) is not None
    for block in message.blocks:
        if isinstance(block, Text):
            content.append({"Text": block.text})
        elif isinstance(block, ToolCall) and (block.by is None or is_ours):
            given = by_key(block.input) if is_ours else ear.free(block.input)
            content.append({"ToolCall": {"id": block.id, "name": block.name, "arguments": given}})
        elif isinstance(block, Image):
            data = ear.data(block)
            if data is None or not (ear.is_rich or is_ours):
                ear.add("image", "a text with its name")
                name = block.name or block.url or block.file or (block.media_type if data is not None else "lost")
                content.append({"Text": f"[picture: {name or 'unnamed'}]"})
                continue
            image = {"data": b64encode(data).decode(), "mime_type": block.media_type or "image/png"}
            content.append({"Image": image})
        elif isinstance(block, File):
            ear.add("file", "a text with its name")
            content.append(
                {"Text": f"[file: {block.name or block.url or block.file or block.media_type or 'unnamed'}]"}
            )
        elif isinstance(block, UnknownBlock):
            if block.kind == BLOCK:
                content.append(_given(block))
            elif block.kind not in (CONTEXT, CALL):
                ear.add(f"{block.kind:.40} block")
        elif isinstance(block, (ToolCall, ToolResult)):
            ear.add("provider's tool call")
    return content


def _results(message: Message, ear: RhoTally) -> list[Json]:
    results: list[Json] = []
    rest: list[AnyBlock] = []
    for block in message.blocks:
        if not isinstance(block, ToolResult):
            rest.append(block)
            continue
        results.append(
            {"ToolResult": {"id": block.call, "ok": not block.is_error, "content": _result_text(block, ear)}}
        )
    if rest:
        results.append({"User": _content(Message(role="user", blocks=rest), ear)})
    return results


def _result_text(result: ToolResult, ear: RhoTally) -> str:
    if isinstance(result.content, str):
        return result.content
    ear.look_at_texts(result.content)
    parts: list[str] = []
    for block in result.content:
        if isinstance(block, Text):
            parts.append(block.text)
            continue
        what = "picture" if isinstance(block, Image) else "file" if isinstance(block, File) else "block"
        ear.add("media in a tool result", "a word for it")
        parts.append(f"[{what}: {getattr(block, 'name', None) or getattr(block, 'media_type', None) or 'unnamed'}]")
    return "\n".join(parts)


def calls_of(raw: Json) -> list[str]:
    """The calls whose results have to follow at once."""
    content = raw.get("Assistant")
    if content is None:
        content = fields(raw.get("EnrichedAssistant")).get("content")
    ids = [fields(fields(block).get("ToolCall")).get("id") for block in listed(content)]
    return [name for name in ids if isinstance(name, str)]


def answers(raw: Json) -> str | None:
    """The call that a message answers."""
    call = fields(raw.get("ToolResult")).get("id")
    return call if isinstance(call, str) else None


def no_result(call: str) -> Json:
    """What stands for a result that never came: without it, rho hides all that follows."""
    return {"ToolResult": {"id": call, "ok": False, "content": INTERRUPTED}}


def open_calls(history: list[Json]) -> list[str] | None:
    """The calls at the end of a history that still need a result; None if that cannot be mended at its end."""
    index = 0
    while index < len(history):
        calls = calls_of(history[index])
        given = [answers(raw) for raw in history[index + 1 : index + 1 + len(calls)]]
        if given != calls:
            is_end = index + 1 + len(given) == len(history) and given == calls[: len(given)]
            return calls[len(given) :] if is_end else None
        index += 1 + len(calls)
    return []


def still_open(waiting: list[str], messages: Iterable[Json]) -> list[str]:
    """The calls that still need a result after more was said."""
    for message in messages:
        call = answers(message)
        if call is None:
            waiting = calls_of(message)
        elif call in waiting:
            waiting = waiting[1:] if call == waiting[0] else []  # out of order, nothing mends it any more
    return waiting
