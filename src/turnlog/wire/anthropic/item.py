"""Messages of Anthropic's API, sent or received, as messages of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from turnlog.errors import Invalid
from turnlog.interop.base64 import from_base64
from turnlog.interop.value import fields, items
from turnlog.log.block import AnyBlock, File, Image, Text, ToolResult, UnknownBlock
from turnlog.log.codec import without_surrogates
from turnlog.log.entry import Message
from turnlog.wire import Received, plain
from turnlog.wire.anthropic.answer import answered_block
from turnlog.wire.anthropic.ask import PROVIDER

_ROLES = ("system", "user", "assistant")


def messages(given: Iterable[Any], *, account: str | None = None) -> Received:
    """What each message says, in their order; `report` names what ours cannot say of it.

    One with results of tools and more is two: the results come first.
    """
    received = Received()
    for item in given:
        received.take(messages_of(plain(item), account), "message")
    return received


def messages_of(item: dict[str, Any], account: str | None = None) -> list[Message]:
    """One message, or two where it has results of tools and more."""
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        raise Invalid(f"the role {role!r:.40}", hint=f"one of {', '.join(_ROLES)}")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) and content else items(content)
    if role == "assistant":
        return [Message(role="assistant", blocks=[answered_block(part, {}, account) for part in parts])]
    results: list[AnyBlock] = [_result(part) for part in parts if part.get("type") == "tool_result"]
    others = [_part(part) for part in parts if part.get("type") != "tool_result"]
    message = Message(role="system" if role == "system" else "user", blocks=others)
    if not results:
        return [message]
    answers = Message(role="tool", blocks=results)
    return [answers, message] if others else [answers]


def _result(raw: dict[str, Any]) -> ToolResult:
    content = raw.get("content")
    blocks = content if isinstance(content, str) else [_part(part) for part in items(content)]
    return ToolResult(call=str(raw.get("tool_use_id") or ""), content=blocks, is_error=raw.get("is_error") is True)


def _part(raw: dict[str, Any]) -> AnyBlock:
    if raw.get("type") == "text" and isinstance(raw.get("text"), str):
        return Text(raw["text"])
    medium = media(raw)
    return medium or UnknownBlock(kind=str(raw.get("type")), json=msgspec.json.encode(raw).decode())


def media(raw: dict[str, Any]) -> Image | File | None:
    """A picture or a document: its bytes or its text where they came along, else where it is."""
    if raw.get("type") not in ("image", "document"):
        return None
    make = Image if raw["type"] == "image" else File
    source = fields(raw.get("source"))
    media_type, name = source.get("media_type"), raw.get("title")
    about: dict[str, Any] = {
        "media_type": media_type if isinstance(media_type, str) else None,
        "name": name if isinstance(name, str) else None,
    }
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        data = from_base64(source["data"])
        return make(data=data, **about) if data else None
    text = _text_of(source) if make is File else None
    if text is not None:
        return File(media_type=about["media_type"] or "text/plain", name=about["name"], data=text.encode())
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return make(url=source["url"], **about)
    if source.get("type") == "file" and isinstance(source.get("file_id"), str):
        return make(file=source["file_id"], provider=PROVIDER, **about)
    return None


def _text_of(source: dict[str, Any]) -> str | None:
    """The text of a document that came along as text; None for any other, and for an empty one."""
    if source.get("type") == "text":
        text = source.get("data")
    elif source.get("type") == "content":
        text = source.get("content")
        parts = items(text)
        if parts and all(part.get("type") == "text" for part in parts):
            text = "\n".join(str(part.get("text") or "") for part in parts)
    else:
        return None
    return cast("str", without_surrogates(text)) if isinstance(text, str) and text else None
