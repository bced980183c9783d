"""Messages of Pydantic AI as messages of ours, and the other way."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from pydantic_ai.conversation_store import ConversationEntry
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from turnlog.adapters._argument import check_id
from turnlog.errors import Invalid
from turnlog.interop.value import token_count
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, bytes_of, tool_names
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Message, Stop
from turnlog.log.item import Mismatch, expand, kept_of, squeeze, storable
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
        return [_message(check_id(entry.id, "entry id"), item) for entry, item in zip(entries, dumped, strict=True)]
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"a message that is not JSON: {error}", hint="give messages of Pydantic AI") from None


def _message(id: str, item: Item) -> Message:
    parts = cast("list[Item]", item.get("parts") or [])
    if item.get("kind") == "response":
        blocks = storable([block for part in parts if (block := _response_block(part)) is not None])
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
    blocks = [block for part in parts for block in _request_blocks(part, role)]
    return Message(id=id, role=role, blocks=blocks, meta={FRAMEWORK: squeeze(item, blocks)})


def _is_result(part: Item) -> bool:
    return part.get("part_kind") == "tool-return" or (
        part.get("part_kind") == "retry-prompt" and bool(part.get("tool_name"))
    )


def _request_blocks(part: Item, role: str) -> list[AnyBlock]:
    kind, content = part.get("part_kind"), part.get("content")
    if _is_result(part):
        text = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        is_error = kind == "retry-prompt" or part.get("outcome") in ("failed", "denied", "retried")
        call, name = str(part.get("tool_call_id") or ""), str(part.get("tool_name") or "")
        return [ToolResult(call=call, name=name, content=text, is_error=is_error)]
    if kind == "system-prompt" and role != "system":
        return []  # beside a prompt it is in the item alone
    parts: list[Any] = [content] if isinstance(content, str) else cast("list[Any]", content or [])
    return [block for inner in parts if (block := _content_block(inner)) is not None]


def _content_block(content: Any) -> AnyBlock | None:
    if isinstance(content, str):
        return Text(content) if content else None
    part = cast("Item", content) if isinstance(content, dict) else {}
    media_type = part.get("media_type") if isinstance(part.get("media_type"), str) else None
    if isinstance(part.get("url"), str):
        return (Image if part.get("kind") == "image-url" else File)(url=part["url"], media_type=media_type)
    if part.get("kind") == "binary" and isinstance(part.get("data"), str):
        data = urlsafe_b64decode(part["data"].replace("+", "-").replace("/", "_"))
        return (Image if (media_type or "").startswith("image/") else File)(data=data, media_type=media_type)
    return Text(part["content"]) if isinstance(part.get("content"), str) else None


def _response_block(part: Item) -> AnyBlock | None:
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
            id=str(part.get("tool_call_id") or ""), name=str(part.get("tool_name") or ""), input=_call_input(args)
        )
    return None


def _call_input(args: Any) -> Any:
    """The input of a call. A text is decoded if it is JSON."""
    if not isinstance(args, str):
        return args
    try:
        return msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        return args


def _usage(usage: dict[str, Any]) -> Usage:
    read, written = token_count(usage, "cache_read_tokens"), token_count(usage, "cache_write_tokens")
    return Usage(
        input_tokens=max(0, token_count(usage, "input_tokens") - read - written),
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=token_count(usage, "output_tokens"),
    )


def entries_of(
    messages: list[Message], session: Session, edited: frozenset[int], limit: int | None
) -> list[ConversationEntry]:
    """Messages as entries, each with the one before as its parent; the newest `limit` of them."""
    names: dict[str, str] = {}
    items = [_item(message, session, names, edited=message.seq in edited) for message in messages]
    parent_ids = [None, *(message.id for message in messages)]
    entries = [
        ConversationEntry(id=message.id, parent_id=parent_id, message=model_message)
        for message, parent_id, model_message in zip(messages, parent_ids, _validated(items), strict=False)
    ]
    return entries if limit is None else entries[-limit:]


def _validated(items: list[Item]) -> list[ModelMessage]:
    try:
        text = msgspec.json.encode(items)
    except (OverflowError, UnicodeEncodeError):  # numbers over 64 bits, or no Unicode
        return ModelMessagesTypeAdapter.validate_python(items)
    return ModelMessagesTypeAdapter.validate_json(text)


def _item(message: Message, session: Session, names: dict[str, str], *, edited: bool) -> Item:
    """What a message is for Pydantic AI: the one it was made from, or one made from its blocks."""
    names |= tool_names(message.blocks)
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
            content = block.content if isinstance(block.content, str) else _content(block.content, session)
            name = block.name or names.get(block.call) or "tool"
            fields = {"tool_name": name, "tool_call_id": block.call, "content": content, "timestamp": at}
            parts.append({"part_kind": "tool-return", **fields})
    if message.role == "system":
        parts.append({"part_kind": "system-prompt", "content": text, "timestamp": at})
    elif (content := _content(message.blocks, session)) or not parts:
        parts.append({"part_kind": "user-prompt", "content": content, "timestamp": at})
    return {"kind": "request", "parts": parts}


def _content(blocks: list[AnyBlock], session: Session) -> str | list[str | Item]:
    """Texts, pictures and files as a prompt or a result has them; only text is one text."""
    if not any(isinstance(block, (Image, File)) for block in blocks):
        return text_of(blocks)
    content: list[str | Item] = []
    for block in blocks:
        if isinstance(block, (Image, File)):
            content.append(_media(block, session))
        elif isinstance(block, Text) and block.text:
            content.append(block.text)
    return content


def _media(block: Image | File, session: Session) -> Item:
    data = bytes_of(block, session.blob)
    if data is not None:
        kind = block.media_type or "application/octet-stream"
        return {"kind": "binary", "data": urlsafe_b64encode(data).decode(), "media_type": kind}
    if block.url is not None:
        return {"kind": "image-url" if isinstance(block, Image) else "document-url", "url": block.url}
    provider = block.provider or "openai"
    return {"kind": "uploaded-file", "file_id": block.file, "provider_name": provider, "media_type": block.media_type}
