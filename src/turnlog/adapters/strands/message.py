"""Messages of Strands as entries, and entries as messages."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import fields as fields_of_class
from typing import Any, cast

from msgspec.structs import replace
from strands.types.session import SessionMessage, decode_bytes_values, encode_bytes_values

from turnlog.errors import Invalid
from turnlog.interop.value import fields, items, text, token_count
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, bytes_of
from turnlog.log.entry import AnyEntry, Edit, Message
from turnlog.log.item import Mismatch, expand, kept_of, squeeze, storable
from turnlog.log.usage import Usage
from turnlog.session import Session

FRAMEWORK = "strands"
Item = dict[str, Any]
Positioned = tuple[int, Message]
"""A message and its position in the conversation."""
_FIELDS = tuple(field.name for field in fields_of_class(SessionMessage))
_HINT = "a message is a dict with a role and a list as its content, as Strands makes it"
_KINDS = {"pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "html": "text/html", "csv": "text/csv"}
_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadInputTokens": "cache_read_tokens",
    "cacheWriteInputTokens": "cache_write_tokens",
}


# ── into the log ──────────────────────────────────────────────────────────────────────────────────


def draft_of(message: SessionMessage) -> Message:
    """A message as an entry; `Invalid` before anything is written."""
    item, content = _checked(message)
    try:
        blocks = storable([block for part in content["content"] if (block := _block(part)) is not None])
        kept = squeeze(item, blocks)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"a message that is not JSON: {error}", hint=_HINT) from None
    is_answer = any(isinstance(block, ToolResult) for block in blocks)
    return Message(
        role="tool" if is_answer else content["role"], blocks=blocks, usage=_usage(content), meta={FRAMEWORK: kept}
    )


def edit_of(entry: int, message: SessionMessage) -> Edit:
    """The edit that makes an entry say what this message says."""
    draft = draft_of(message)
    return Edit(entry=entry, blocks=draft.blocks, meta=draft.meta)


def _checked(message: SessionMessage) -> tuple[Item, Item]:
    """A message as JSON, and the part that a model sees, which may be redacted."""
    try:
        item = _as_dict(message)
        visible: Item = item["message"] if item.get("redact_message") is None else item["redact_message"]
        if visible["role"] in ("user", "assistant") and all(isinstance(part, dict) for part in visible["content"]):
            return item, visible
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Invalid(f"a message that lacks something: {error!r:.80}", hint=_HINT) from None
    except RecursionError:
        raise Invalid("a message that is nested too many levels deep", hint=_HINT) from None
    raise Invalid(f"the message {visible!r:.80} is none of Strands", hint=_HINT)


def _as_dict(message: SessionMessage) -> Item:
    """What `to_dict` gives, which copies a message twice: a quarter of the time of an append."""
    if type(message) is not SessionMessage:
        return message.to_dict()
    return {name: encode_bytes_values(getattr(message, name)) for name in _FIELDS}


def _block(part: Item) -> AnyBlock | None:
    """A part of a message as a block; None for one that says nothing."""
    [kind, value] = next(iter(part.items()), ("", None))
    if isinstance(value, str):
        return Text(value) if kind == "text" else None
    if not isinstance(value, dict):
        return None
    body = cast("Item", value)
    if kind == "toolUse":
        return ToolCall(id=str(body.get("toolUseId")), name=str(body.get("name")), input=body.get("input"))
    if kind == "toolResult":
        return _result(body)
    if kind == "reasoningContent":
        reasoning = fields(body.get("reasoningText"))
        data = {"signature": reasoning["signature"]} if reasoning.get("signature") else None
        return Thinking(text=str(reasoning.get("text") or ""), provider=FRAMEWORK, data=data)
    if kind in ("image", "document", "video", "audio"):
        return _media(kind, body)
    return Text(_inside(body)) if _inside(body) else None


def _inside(body: Item) -> str:
    """The text of guarded content, or of citations."""
    texts = [body.get("text"), *items(body.get("content"))]
    return "\n".join(str(cast("Item", piece)["text"]) for piece in texts if isinstance(piece, dict) and "text" in piece)


def _result(body: Item) -> ToolResult:
    parts: list[AnyBlock] = []
    for inner in items(body.get("content")):
        block = Text(json.dumps(inner["json"], ensure_ascii=False)) if "json" in inner else _block(inner)
        parts += [] if block is None else [block]
    content: str | list[AnyBlock] = parts
    if len(parts) == 1 and isinstance(parts[0], Text):
        content = parts[0].text
    return ToolResult(call=str(body.get("toolUseId")), content=content, is_error=body.get("status") == "error")


def _media(kind: str, body: Item) -> Image | File | None:
    format_name = body.get("format")
    source = fields(body.get("source"))
    location = fields(source.get("location"))
    media_type = _KINDS.get(str(format_name), f"{'application' if kind == 'document' else kind}/{format_name}")
    make = Image if kind == "image" else File
    title = text(body.get("name"))
    data = text(fields(source.get("bytes")).get("data"))
    if data is not None:
        return make(media_type=media_type, name=title, data=b64decode(data))
    uri = text(location.get("uri"))
    return make(media_type=media_type, name=title, url=uri) if uri else None


def _usage(message: Item) -> Usage | None:
    counts = fields(fields(message.get("metadata")).get("usage"))
    spent = {ours: token_count(counts, theirs) for theirs, ours in _USAGE.items() if theirs in counts}
    return replace(Usage(), **spent) if spent else None


# ── out of the log ────────────────────────────────────────────────────────────────────────────────


def messages_of(session: Session, nodes: Iterable[Positioned], edits: dict[int, Edit]) -> list[SessionMessage]:
    """Messages, each with its position in the conversation. `edits` are the newest of each entry."""
    return [_message(session, position, node, edits.get(node.seq)) for position, node in nodes]


def _message(session: Session, position: int, node: Message, edit: Edit | None) -> SessionMessage:
    for source in (edit, node):
        kept = None if source is None else kept_of(source, FRAMEWORK)
        if kept is not None:
            is_edited = source is node and edit is not None
            try:
                item = expand(kept, node.blocks, session.blob, edited=is_edited)
            except Mismatch:
                continue
            known_fields = {name: value for name, value in item.items() if name in _FIELDS}
            return SessionMessage(**decode_bytes_values({**known_fields, "message_id": position}))
    at = "" if node.at is None else node.at.isoformat()
    role = "assistant" if node.role == "assistant" else "user"
    content = [part for block in node.blocks if (part := _part(session, block)) is not None]
    return SessionMessage({"role": role, "content": content}, position, created_at=at, updated_at=at)  # type: ignore[typeddict-item]


def says_something(node: AnyEntry) -> bool:
    """Whether it is a message for Strands: one of its own, or one with something in it."""
    if not isinstance(node, Message):
        return False
    return bool(node.blocks) or kept_of(node, FRAMEWORK) is not None


def _part(session: Session, block: AnyBlock) -> Item | None:
    """A part of a message that Strands did not write."""
    if isinstance(block, Text):
        return {"text": block.text} if block.text else None
    if isinstance(block, ToolCall) and block.by is None:
        return {"toolUse": {"toolUseId": block.id, "name": block.name, "input": block.input or {}}}
    if isinstance(block, ToolResult):
        parts = [{"text": block.content}]
        if not isinstance(block.content, str):
            parts = [part for inner in block.content if (part := _part(session, inner)) is not None]
        status = "error" if block.is_error else "success"
        return {"toolResult": {"toolUseId": block.call, "status": status, "content": parts}}
    if isinstance(block, (Image, File)):
        data = bytes_of(block, session.blob)
        if data is not None:
            kind = (block.media_type or "").rpartition("/")[2] or "txt"
            if isinstance(block, Image):
                return {"image": {"format": kind, "source": {"bytes": data}}}
            formats = {media_type: name for name, media_type in _KINDS.items()}
            format_name = formats.get(block.media_type or "", kind)
            return {"document": {"format": format_name, "name": block.name or "file", "source": {"bytes": data}}}
    return None  # reasoning is signed for one model, and would be refused by another
