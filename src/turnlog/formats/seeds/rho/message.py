"""Messages of rho as entries, and entries as messages of rho.

What an entry cannot say is in its `origin`: who answered, and as which kind; a patch for what differs besides; or all
of a message that is not as it should be.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from turnlog.formats._shared import origin as shared
from turnlog.formats._shared.tally import Tally, stand_in
from turnlog.interop.base64 import from_base64
from turnlog.interop.json import decode
from turnlog.interop.patch import apply_flat, flat_patch
from turnlog.interop.rust import by_key, compact
from turnlog.interop.value import as_counter, fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import text_of
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Message
from turnlog.log.usage import Usage

NAME = "rho"
Json = dict[str, Any]
BLOCK, MESSAGE, CONTEXT, CALL = "rho.block", "rho.message", "rho.context", "rho.call"
"""Kinds of blocks: what we do not know, opaque data of a provider, a call that never was complete."""
THOUGHT = "turnlog.thinking"
"""Our reasoning inside rho's opaque data."""
NOBODY = {"provider": "unknown", "api": "unknown", "model": "unknown"}
_USAGE = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "total_tokens")
encode = msgspec.json.Encoder().encode


class RhoTally(Tally):
    """Loss tally with blob access, used while messages are encoded."""

    is_rich = False
    """Whether this rho knows pictures, reasoning, and who gave a response or broke it off; the first does not."""


origin_of = partial(shared.origin_of, agent=NAME)
"""What an entry brought along from rho; None for one that never was there."""


def is_newer(entry: AnyEntry) -> bool:
    """Whether it came from rho and says what the first one would refuse."""
    origin = origin_of(entry)
    if origin is None:
        return False
    if "as" in origin or origin.get("is", "part") != "part":
        return True
    if not isinstance(entry, Message):
        return False
    return entry.display is not None or any(isinstance(b, (Image, Thinking, UnknownBlock)) for b in entry.blocks)


def digest(raw: Json) -> bytes:
    """What tells one message from another."""
    return sha256(encode(raw)).digest()[:16]


def to_entry(raw: Json, at: datetime | None = None, **origin: Any) -> Message:
    """A message of rho as an entry. Never fails: what is not understood is kept as it is."""
    message: Json = _fields_of(raw) or {"role": "user", "blocks": [_kept(MESSAGE, raw)]}
    more = message.pop("origin", {})
    entry = Message(**message, at=at, origin={"agent": NAME, **origin, **more})
    (again,) = to_messages(entry, RhoTally())
    if encode(again) != encode(raw):
        ((kind, inner),) = again.items()
        is_patched = isinstance(inner, dict) and list(raw) == [kind]
        entry.origin.update({"patch": flat_patch(fields(inner), raw[kind])} if is_patched else {"message": raw})
    return entry


def text_shown(raw: Any) -> str | None:
    """The text of a message as people see it."""
    message = _fields_of(raw)
    return text_of(message["blocks"]) if message is not None else None


def _fields_of(raw: Any) -> Json | None:
    """The fields of an entry, its origin among them; None for a message that is not as it should be."""
    try:
        ((kind, inner),) = raw.items()
        return _READERS[kind](inner)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _result(inner: Json) -> Json:
    content, is_error = as_text(inner["content"]), inner["ok"] is not True
    return {"role": "tool", "blocks": [ToolResult(call=as_text(inner["id"]), content=content, is_error=is_error)]}


def _enriched(inner: Json, kind: str = "enriched") -> Json:
    message: Json = {"role": "assistant", "origin": {"as": kind}}
    maker = inner.get("provenance")
    provider = None
    if maker is not None:
        provider, message["model"] = as_text(maker["provider"]), as_text(maker["model"])
        message["origin"]["by"] = [provider, maker["api"]]
    contexts = inner.get("provider_context", [])
    ours = [context["data"] for context in contexts if context["kind"] == THOUGHT]
    thoughts = [Thinking(text=as_text(t["text"]), provider=t["provider"], data=t["data"]) for t in ours]
    if not ours:
        texts = [inner["reasoning"]] if inner.get("reasoning") else []
        texts += [inner["reasoning_summary"]] if "reasoning_summary" in inner else []
        thoughts = [Thinking(text=as_text(text), provider=provider) for text in texts]
    others = [_kept(CONTEXT, context) for context in contexts if context["kind"] != THOUGHT]
    return {**message, "blocks": [*thoughts, *(_block(block) for block in inner["content"]), *others]}


def _aborted(inner: Json) -> Json:
    message = _enriched(inner, "aborted")
    blocks = [*message["blocks"], *(_kept(CALL, call) for call in inner["tool_calls"])]
    return {**message, "stop": "aborted", "blocks": blocks, "usage": _usage(inner["usage"])}


_READERS: dict[str, Callable[[Any], Json]] = {
    "System": lambda inner: {"role": "system", "blocks": [Text(text=as_text(inner))]},
    "User": lambda inner: {"role": "user", "blocks": [*map(_block, inner)]},
    "Assistant": lambda inner: {"role": "assistant", "blocks": [*map(_block, inner)]},
    "ToolResult": _result, "EnrichedAssistant": _enriched, "AbortedAssistant": _aborted,
}  # fmt: skip


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


def _kept_in(block: UnknownBlock) -> Any:
    return decode(block.json.encode())["rho"]


def as_text(value: Any) -> str:
    """That value, which has to be text."""
    if not isinstance(value, str):
        raise TypeError("not text")
    return value


def _usage(counts: Json) -> Usage:
    cost = counts.get("cost_usd_micros")
    tokens = {name: as_counter(counts.get(name)) or 0 for name in _USAGE[:4]}
    return Usage(**tokens, cost_micros=None if cost is None else as_counter(cost) or 0)


def to_messages(message: Message, tally: RhoTally) -> list[Json]:
    """An entry as messages of rho: one, unless a tool message holds several results."""
    origin = origin_of(message)
    if origin is not None and "message" in origin:
        return [origin["message"]]
    if message.role == "system":
        messages = [{"System": text_of(message.blocks)}]
    elif message.role == "tool":
        messages = _results(message, tally)
    elif message.role == "user":
        content = _content(message, tally)
        messages = [{"User": content}] if content or origin is not None else []
    else:
        messages = _answer(message, origin, tally)
    if messages and origin is not None and "patch" in origin:
        ((kind, inner),) = messages[0].items()
        messages = [{kind: apply_flat(fields(inner), origin["patch"])}]
    return messages


def _answer(message: Message, origin: Json | None, tally: RhoTally) -> list[Json]:
    kind = _kind(message, tally) if origin is None else origin.get("as", "plain")
    if origin is None and message.usage is not None and kind != "aborted":
        tally.add("usage of a message")
    content = _content(message, tally)
    if kind == "plain":
        return [{"Assistant": content}] if content or origin is not None else []  # all of it is reported as lost
    thoughts = [block for block in message.blocks if isinstance(block, Thinking)]
    by = origin.get("by") if origin is not None else None
    if origin is None and message.model:
        by = next((thought.provider for thought in thoughts if thought.provider), "unknown"), "unknown"
    maker = {"provider": by[0], "api": by[1], "model": message.model} if by is not None else None
    contexts = _given(message, CONTEXT)
    if any(thought.data is not None for thought in thoughts):
        # An api that no provider has: rho keeps this and never sends it.
        for thought in thoughts:
            data = by_key({"text": thought.text, "provider": thought.provider, "data": thought.data})
            contexts.append({"identity": maker or NOBODY, "kind": THOUGHT, "data": data})
    record: Json = {
        "content": content,
        **({"reasoning": ""} if kind == "aborted" else {}),
        **({"provenance": maker} if maker is not None else {}),
        **({"reasoning_summary": "\n\n".join(thought.text for thought in thoughts)} if thoughts else {}),
        **({"provider_context": contexts} if contexts else {}),
    }
    if kind == "enriched":
        return [{"EnrichedAssistant": record}]
    usage = message.usage or Usage()
    output, written = usage.output_tokens, usage.cache_write_tokens + usage.cache_write_1h_tokens
    counts = (usage.input_tokens, output, usage.cache_read_tokens, written, usage.all_input_tokens + output)
    spent: Json = {name: count or None for name, count in zip(_USAGE, counts, strict=True)}  # none and zero are one
    spent |= {"context_window": None, "cost_usd_micros": usage.cost_micros}
    return [{"AbortedAssistant": {**record, "tool_calls": _given(message, CALL), "usage": spent}}]


def _kind(message: Message, tally: RhoTally) -> str:
    is_aborted = message.stop == "aborted" and not any(isinstance(block, ToolCall) for block in message.blocks)
    if is_aborted and tally.is_rich:
        return "aborted"
    thoughts = sum(isinstance(block, Thinking) for block in message.blocks)
    if tally.is_rich and (thoughts or message.model):
        return "enriched"
    tally.add("reasoning", "", thoughts)
    tally.add("model of a message", "", int(bool(message.model)))
    tally.add("broken-off response", "a whole one", int(is_aborted))
    return "plain"


def _given(message: Message, kind: str) -> list[Json]:
    """What of a message no block of ours can say, as it was."""
    return [_kept_in(block) for block in message.blocks if isinstance(block, UnknownBlock) and block.kind == kind]


def _content(message: Message, tally: RhoTally) -> list[Json]:
    content: list[Json] = []
    is_ours = origin_of(message) is not None
    for block in message.blocks:
        if isinstance(block, Text):
            content.append({"Text": block.text})
        elif isinstance(block, ToolCall) and (block.by is None or is_ours):
            given = by_key(block.input) if is_ours else tally.as_rust_json(block.input)
            content.append({"ToolCall": {"id": block.id, "name": block.name, "arguments": given}})
        elif isinstance(block, Image) and (tally.is_rich or is_ours) and (data := tally.data(block)) is not None:
            content.append({"Image": {"data": b64encode(data).decode(), "mime_type": block.media_type or "image/png"}})
        elif isinstance(block, (Image, File)):
            tally.add("image" if isinstance(block, Image) else "file", "a text with its name")
            content.append({"Text": stand_in(block)})
        elif isinstance(block, UnknownBlock) and block.kind == BLOCK:
            content.append(_kept_in(block))
        elif isinstance(block, UnknownBlock):
            tally.add(f"{block.kind:.40} block", "", int(block.kind not in (CONTEXT, CALL)))
        elif isinstance(block, (ToolCall, ToolResult)):
            tally.add("provider's tool call")
    return content


def _results(message: Message, tally: RhoTally) -> list[Json]:
    results = [
        {"ToolResult": {"id": block.call, "ok": not block.is_error, "content": tally.result(block.content)}}
        for block in message.blocks
        if isinstance(block, ToolResult)
    ]
    rest: list[AnyBlock] = [block for block in message.blocks if not isinstance(block, ToolResult)]
    return [*results, {"User": _content(Message(role="user", blocks=rest), tally)}] if rest else results
