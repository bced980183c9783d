"""Messages of Pydantic AI as messages of ours, and the other way."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from pydantic_ai.conversation_store import ConversationEntry
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from turnlog.adapters._shelf import check_id
from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Message, Stop
from turnlog.log.item import Mismatch, expand, kept_of, squeeze
from turnlog.log.usage import Usage
from turnlog.session import Session

FRAMEWORK = "pydantic-ai"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STOPS: dict[str, Stop] = {
    "stop": "end", "length": "length", "tool_call": "tool_use", "content_filter": "error", "error": "error",
}  # fmt: skip
Item = dict[str, Any]


def drafted(entries: list[ConversationEntry]) -> list[AnyEntry]:
    """Entries as messages, each with what its blocks do not say; `Invalid` before anything is written."""
    try:
        dumped = ModelMessagesTypeAdapter.dump_python([entry.message for entry in entries], mode="json")
    except ValueError as error:
        raise Invalid(f"a message that is not JSON: {error}", hint="give messages of Pydantic AI") from None
    return [_message(check_id(entry.id, "entry id"), item) for entry, item in zip(entries, dumped, strict=True)]


def _message(id: str, item: Item) -> Message:
    parts = cast("list[Item]", item.get("parts") or [])
    if item.get("kind") == "response":
        blocks = [block for part in parts if (block := _answer_block(part)) is not None]
        usage = cast("dict[str, int]", item.get("usage") or {})
        return Message(
            id=id,
            role="assistant",
            blocks=blocks,
            model=item.get("model_name"),
            request=item.get("provider_response_id"),
            usage=_usage(usage) if any(usage.values()) else None,
            stop=_STOPS.get(str(item.get("finish_reason"))),
            meta={FRAMEWORK: squeeze(item, blocks)},
        )
    kinds = {str(part.get("part_kind")) for part in parts}
    role = "tool" if any(_is_result(part) for part in parts) else "user" if kinds - {"system-prompt"} else "system"
    blocks = [block for part in parts for block in _asked_blocks(part, role)]
    return Message(id=id, role=role, blocks=blocks, meta={FRAMEWORK: squeeze(item, blocks)})


def _is_result(part: Item) -> bool:
    return part.get("part_kind") == "tool-return" or (
        part.get("part_kind") == "retry-prompt" and bool(part.get("tool_name"))
    )


def _asked_blocks(part: Item, role: str) -> list[AnyBlock]:
    kind, content = part.get("part_kind"), part.get("content")
    if _is_result(part):
        text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        is_error = kind == "retry-prompt" or part.get("outcome") in ("failed", "denied", "retried")
        call, name = str(part.get("tool_call_id") or ""), str(part.get("tool_name") or "")
        return [ToolResult(call=call, name=name, content=text, is_error=is_error)]
    if kind == "system-prompt" and role != "system":
        return []  # beside a prompt it is in the item alone
    parts: list[Any] = [content] if isinstance(content, str) else cast("list[Any]", content or [])
    return [block for one in parts if (block := _asked_block(one)) is not None]


def _asked_block(one: Any) -> AnyBlock | None:
    if isinstance(one, str):
        return Text(one) if one else None
    part = cast("Item", one) if isinstance(one, dict) else {}
    media_type = part.get("media_type") if isinstance(part.get("media_type"), str) else None
    if isinstance(part.get("url"), str):
        return (Image if part.get("kind") == "image-url" else File)(url=part["url"], media_type=media_type)
    if part.get("kind") == "binary" and isinstance(part.get("data"), str):
        data = urlsafe_b64decode(part["data"].replace("+", "-").replace("/", "_"))
        return (Image if (media_type or "").startswith("image/") else File)(data=data, media_type=media_type)
    return Text(part["content"]) if isinstance(part.get("content"), str) else None


def _answer_block(part: Item) -> AnyBlock | None:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "text" and content:
        return Text(str(content))
    if kind == "thinking":
        signature = part.get("signature")
        provider = part.get("provider_name")
        return Thinking(
            text=str(content or ""), provider=provider, data={"signature": signature} if signature else None
        )
    if kind == "tool-call":
        args = part.get("args")
        return ToolCall(
            id=str(part.get("tool_call_id") or ""), name=str(part.get("tool_name") or ""), input=_given(args)
        )
    return None


def _given(args: Any) -> Any:
    """A call's input: what its JSON says, if it is a text of that."""
    if not isinstance(args, str):
        return args
    try:
        return msgspec.json.decode(args)
    except msgspec.DecodeError:
        return args


def _usage(usage: dict[str, Any]) -> Usage:
    def count(name: str) -> int:
        value = usage.get(name)
        return value if isinstance(value, int) and value > 0 else 0

    read, written = count("cache_read_tokens"), count("cache_write_tokens")
    return Usage(
        input_tokens=max(0, count("input_tokens") - read - written),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=count("output_tokens"),
    )


def entries_of(
    said: list[Message], session: Session, edited: frozenset[int], limit: int | None
) -> list[ConversationEntry]:
    """Messages as entries, each hanging on the one before; the last of them."""
    names: dict[str, str] = {}
    items = [_item(message, session, names, edited=message.seq in edited) for message in said]
    messages: list[ModelMessage] = ModelMessagesTypeAdapter.validate_json(msgspec.json.encode(items))
    above = [None, *(message.id for message in said)]
    entries = [
        ConversationEntry(id=message.id, parent_id=parent, message=item)
        for message, parent, item in zip(said, above, messages, strict=False)
    ]
    return entries if limit is None else entries[-limit:]


def _item(message: Message, session: Session, names: dict[str, str], *, edited: bool) -> Item:
    """What a message is for Pydantic AI: the one it was made from, or one made from its blocks."""
    for block in message.blocks:
        if isinstance(block, ToolCall):
            names[block.id] = block.name
    kept = kept_of(message, FRAMEWORK)
    if kept is not None:
        try:
            return expand(kept, message.blocks, session.blob, edited=edited)
        except Mismatch:
            pass
    at = (message.at or _EPOCH).isoformat()  # the same whenever it is read
    text = text_of(message.blocks)
    if message.role == "assistant":
        parts: list[Item] = [{"part_kind": "text", "content": text}] if text else []
        calls = (block for block in message.blocks if isinstance(block, ToolCall) and block.by is None)
        parts += [
            {"part_kind": "tool-call", "tool_name": call.name, "args": call.input, "tool_call_id": call.id}
            for call in calls
        ]
        return {"kind": "response", "parts": parts, "model_name": message.model, "timestamp": at}
    parts = []
    for block in message.blocks:
        if isinstance(block, ToolResult):
            content = block.content if isinstance(block.content, str) else text_of(block.content)
            name = block.name or names.get(block.call) or "tool"
            fields = {"tool_name": name, "tool_call_id": block.call, "content": content, "timestamp": at}
            parts.append({"part_kind": "tool-return", **fields})
    kind = "system-prompt" if message.role == "system" else "user-prompt"
    if text or not parts:
        parts.append({"part_kind": kind, "content": text, "timestamp": at})
    return {"kind": "request", "parts": parts}
