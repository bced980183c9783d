"""Items of the SDK as messages of ours, and messages as items."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, File, Image, Text, ToolCall, ToolResult, UnknownBlock, bytes_of
from turnlog.log.entry import Message
from turnlog.log.item import Mismatch, expand, kept_of, squeeze, storable
from turnlog.session import Session
from turnlog.wire import kind_of
from turnlog.wire.openai.item import message_of

FRAMEWORK = "openai-agents"
Item = dict[str, Any]


def drafted(item: object) -> Message:
    """An item as an entry; `Invalid` before anything is written."""
    if type(item) is not dict and not isinstance(item, Mapping):  # the first is cheap, and true of most
        raise Invalid(f"the item {item!r:.80} is not a mapping", hint="an item is a dict, as the SDK makes it")
    fields = dict(cast("Mapping[str, Any]", item))
    try:
        message = message_of(fields)
    except (Invalid, TypeError, RecursionError):
        message = Message(role="assistant")  # of a kind that nobody knows: kept beside no blocks
    try:
        blocks = storable([block for block in message.blocks if not isinstance(block, UnknownBlock)])
        kept = squeeze(fields, blocks)
    except (TypeError, ValueError) as error:
        raise Invalid(f"an item that is not JSON: {error}", hint="an item is a dict, as the SDK makes it") from None
    return Message(id=message.id, role=message.role, blocks=blocks, meta={FRAMEWORK: kept})


def items_of(message: Message, session: Session, *, edited: bool = False) -> list[Item]:
    """What a message is for the SDK: the item it was made from, or items made from its blocks."""
    if (kept := kept_of(message, FRAMEWORK)) is not None:
        try:
            return [expand(kept, message.blocks, session.blob, edited=edited)]
        except Mismatch:
            pass
    spoken = message.blocks
    if message.role == "assistant":  # it says texts; a picture that it made is named in one
        spoken = [Text(f"[{kind_of(block)}]") if isinstance(block, (Image, File)) else block for block in spoken]
    content = [part for block in spoken if (part := _part(block, session)) is not None]
    items: list[Item] = []
    if content:
        role = "user" if message.role == "tool" else message.role
        items.append({"role": role, "content": _shortest(content)})
    for block in message.blocks:
        if isinstance(block, ToolCall) and block.by is None:
            arguments = msgspec.json.encode(block.input or {}).decode()
            items.append({"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments})
        elif isinstance(block, ToolResult):
            parts = [Text(block.content)] if isinstance(block.content, str) else block.content
            output = [part for inner in parts if (part := _part(inner, session)) is not None]
            items.append({"type": "function_call_output", "call_id": block.call, "output": _shortest(output)})
    return items


def _part(block: AnyBlock, session: Session) -> Item | None:
    """A text, a picture or a file as the SDK sends it; None for what has no part in a message."""
    if isinstance(block, Text):
        return {"type": "input_text", "text": block.text} if block.text else None
    if not isinstance(block, (Image, File)):
        return None
    data = bytes_of(block, session.blob)
    url = block.url if data is None else f"data:{block.media_type};base64,{b64encode(data).decode()}"
    if isinstance(block, Image):
        reference = {"image_url": url} if url is not None else {"file_id": block.file}
        return {"type": "input_image", "detail": "auto", **reference}
    if data is not None:
        return {"type": "input_file", "file_data": url, "filename": block.name or "file"}
    return {"type": "input_file", **({"file_url": url} if url is not None else {"file_id": block.file})}


def _shortest(parts: list[Item]) -> str | list[Item]:
    """Parts as one text if all of them are texts."""
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts
