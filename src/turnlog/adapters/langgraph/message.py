"""LangChain's messages as messages of ours, and back: exactly where one was made from the other."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import Any, cast

from langchain_core import messages as lc
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from turnlog.interop.value import token_count
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, bytes_of
from turnlog.log.entry import Message, Role
from turnlog.log.item import GetBlob, Mismatch, expand, kept_of, squeeze
from turnlog.log.usage import Usage

FRAMEWORK = "langgraph"
_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_THOUGHTS = ("thinking", "reasoning", "redacted_thinking")


def drafted(message: BaseMessage, item: dict[str, Any]) -> Message:
    """A message as an entry: what it says in blocks, the rest of `item`, its own dump, beside them."""
    blocks = _blocks(message)
    kept = {"class": type(message).__name__, "item": squeeze(item, blocks)}
    role = _ROLES.get(message.type.removesuffix("Chunk").removesuffix("Message").lower(), "user")
    usage = _usage(message) if isinstance(message, AIMessage) else None
    about = cast("dict[str, Any]", message.response_metadata or {})
    model = about.get("model_name") or about.get("model")
    return Message(
        role=role,
        blocks=blocks,
        model=model if isinstance(model, str) and role == "assistant" else None,
        usage=usage,
        meta={FRAMEWORK: kept},
    )


def is_plain(message: Any) -> bool:
    """Whether it is one of LangChain's own kinds of messages, and no subclass of somebody's."""
    kind = cast("type[Any]", type(message))
    return isinstance(message, BaseMessage) and getattr(lc, kind.__name__, None) is kind


def restored(entry: Message, get_blob: GetBlob, *, edited: bool = False) -> list[BaseMessage]:
    """What an entry is for LangChain: the message it was made from, or messages made from its blocks."""
    kept = kept_of(entry, FRAMEWORK)
    if kept is not None:
        try:
            return [built(kept["class"], expand(kept["item"], entry.blocks, get_blob, edited=edited))]
        except Mismatch:
            pass
    return _messages_from_blocks(entry, get_blob)


def built(kind: str, item: dict[str, Any]) -> BaseMessage:
    """A message of LangChain's from its dump, as LangGraph's own serializer does it."""
    cls = getattr(lc, kind)
    try:
        return cls(**item)
    except (TypeError, ValueError):
        return cls.model_construct(**item)


# ── blocks from a message ─────────────────────────────────────────────────────────────────────────


def _blocks(message: BaseMessage) -> list[AnyBlock]:
    content = cast("str | list[Any]", message.content)
    if isinstance(message, ToolMessage):
        parts: str | list[AnyBlock] = content if isinstance(content, str) else [_part(part) for part in content]
        failed = message.status == "error"
        return [ToolResult(call=message.tool_call_id, content=parts, is_error=failed, name=message.name)]
    blocks: list[AnyBlock] = []
    if isinstance(content, str):
        if content:
            blocks.append(Text(content))
    else:
        calls = isinstance(message, AIMessage)
        blocks += [_part(part) for part in content if not (calls and _kind(part) in ("tool_use", "tool_call"))]
    if isinstance(message, AIMessage):
        blocks += [ToolCall(id=call["id"] or "", name=call["name"], input=call["args"]) for call in message.tool_calls]
    return blocks


def _kind(part: Any) -> str:
    return str(cast("dict[str, Any]", part).get("type")) if isinstance(part, dict) else ""


def _part(part: Any) -> AnyBlock:
    if isinstance(part, str):
        return Text(part)
    fields = cast("dict[str, Any]", part)
    kind = _kind(part)
    if kind == "text" and isinstance(fields.get("text"), str):
        return Text(fields["text"])
    if kind in _THOUGHTS:
        text = fields.get("thinking") or fields.get("reasoning") or ""
        return Thinking(text=text if isinstance(text, str) else "", data=fields)
    picture = _media(fields)
    return picture if picture is not None else Text("")


def _media(fields: dict[str, Any]) -> Image | File | None:
    url = fields.get("image_url", fields.get("url"))
    url = cast("dict[str, Any]", url).get("url") if isinstance(url, dict) else url
    data, kind = fields.get("base64") or fields.get("data"), fields.get("mime_type")
    source = fields.get("source")
    if isinstance(source, dict):
        inner = cast("dict[str, Any]", source)
        data, kind, url = inner.get("data"), inner.get("media_type"), inner.get("url")
    if isinstance(url, str) and (match := _DATA_URL.fullmatch(url)):
        data, kind, url = match[2], match[1], None
    name = _kind(fields)
    make = Image if name.startswith("image") or str(kind).startswith("image/") else File
    if make is File and name not in ("file", "audio", "video", "document", "input_audio"):
        return None
    try:
        content = b64decode(data, validate=True) if isinstance(data, str) else None
    except binascii.Error:
        content = None
    if content is None and not isinstance(url, str):
        return None
    return make(media_type=kind if isinstance(kind, str) else None, data=content, url=url if content is None else None)


def _usage(message: AIMessage) -> Usage | None:
    usage = message.usage_metadata
    if not usage:
        return None
    details = "input_token_details"
    cached, written = token_count(usage, details, "cache_read"), token_count(usage, details, "cache_creation")
    return Usage(
        input_tokens=max(0, token_count(usage, "input_tokens") - cached - written),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=token_count(usage, "output_tokens"),
        reasoning_tokens=token_count(usage, "output_token_details", "reasoning"),
    )


# ── messages from blocks ──────────────────────────────────────────────────────────────────────────


def _messages_from_blocks(entry: Message, get_blob: GetBlob) -> list[BaseMessage]:
    if entry.role == "tool":
        return [
            ToolMessage(
                content=_content(block.content if isinstance(block.content, list) else [Text(block.content)], get_blob),
                tool_call_id=block.call,
                name=block.name,
                status="error" if block.is_error else "success",
                id=entry.id,
            )
            for block in entry.blocks
            if isinstance(block, ToolResult)
        ]
    content = _content(entry.blocks, get_blob)
    if entry.role == "assistant":
        calls = [b for b in entry.blocks if isinstance(b, ToolCall) and b.by is None]
        tool_calls: list[Any] = [{"name": b.name, "args": _args(b), "id": b.id} for b in calls]
        return [AIMessage(content=content, tool_calls=tool_calls, id=entry.id)]
    return [(SystemMessage if entry.role == "system" else HumanMessage)(content=content, id=entry.id)]


def _args(call: ToolCall) -> dict[str, Any]:
    arguments: Any = call.input
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}


def _content(blocks: list[AnyBlock], get_blob: GetBlob) -> Any:
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, (Image, File)):
            kind = "image" if isinstance(block, Image) else "file"
            data = bytes_of(block, get_blob)
            if data is not None:
                form = {"source_type": "base64", "mime_type": block.media_type, "data": b64encode(data).decode()}
            elif block.url is not None:
                form = {"source_type": "url", "url": block.url}
            else:
                form = {"source_type": "id", "id": block.file}
            parts.append({"type": kind, **form})
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts
