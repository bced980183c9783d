"""Items of the Responses API and messages of Chat Completions, sent or received, as messages of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from turnlog.errors import Invalid
from turnlog.interop.base64 import from_base64
from turnlog.interop.value import fields, items
from turnlog.log.block import AnyBlock, File, Image, Text, ToolResult
from turnlog.log.entry import Message, Role
from turnlog.wire import Received, plain
from turnlog.wire.openai import chat, responses
from turnlog.wire.openai.part import PROVIDER, REFUSAL, RUN_BY_PROVIDER

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_OUTPUT = "_output"
_AUDIO = {"mp3": "audio/mpeg", "wav": "audio/wav"}
"""The media types of the formats that `input_audio` can have."""


def messages(given: Iterable[Any], *, account: str | None = None) -> Received:
    """Items as messages, in their order; `report` names what a message cannot say of its item.

    Consecutive items of the assistant in the Responses API are one message, as they were one response: reasoning is
    sent only with what followed it. Anything else is a message of its own.
    """
    received = Received()
    last_type: Any = None
    for item in map(plain, given):
        message, type = message_of(item, account), item.get("type")
        is_second = bool(received) and received[-1].role == message.role == "assistant"
        received.take([message], str(type), goes_on=is_second and (type or last_type) is not None)
        last_type = type
    return received


def message_of(item: dict[str, Any], account: str | None = None) -> Message:
    """One item as one message. What nobody knows has an unknown block, and is an assistant's."""
    kind, role = item.get("type"), item.get("role")
    if isinstance(role, str) and kind in (None, "message"):
        if role not in _ROLES:
            raise Invalid(f"the role {role!r:.40}", hint=f"one of {', '.join(_ROLES)}")
        if role == "tool":
            return _result(str(item.get("tool_call_id") or ""), item.get("content"), account)
        if role == "assistant":
            is_chat = kind is None and "phase" not in item
            blocks = chat.said_blocks(item, account) if is_chat else _said_in_responses(item, account)
            return Message(role="assistant", blocks=blocks)
        return Message(role=_ROLES[role], blocks=_parts(item.get("content"), account))
    if isinstance(kind, str) and kind.endswith(_OUTPUT) and "call_id" in item and kind not in RUN_BY_PROVIDER:
        return _result(str(item["call_id"]), item.get("output"), account)
    return Message(role="assistant", blocks=responses.item_blocks(item, {}, account))


def _said_in_responses(item: dict[str, Any], account: str | None) -> list[AnyBlock]:
    return responses.texts_of(item.get("content"), item.get("phase"), account)


def _result(call: str, output: Any, account: str | None) -> Message:
    content: str | list[AnyBlock] = output if isinstance(output, str) else _parts(output, account)
    return Message(role="tool", blocks=[ToolResult(call=call, content=content)])


def _parts(content: Any, account: str | None) -> list[AnyBlock]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_part(part, account) for part in items(content)]


def _part(part: dict[str, Any], account: str | None) -> AnyBlock:
    kind = str(part.get("type"))
    text = part.get("text", part.get(REFUSAL))
    if isinstance(text, str):
        return Text(text)
    media = _media(kind, part)
    return media if media is not None else responses.item_blocks(part, {}, account)[0]


def _media(kind: str, part: dict[str, Any]) -> Image | File | None:
    """A picture or a file: bytes where they came along, else where they are."""
    inner = fields(part.get("file") or part.get("input_audio")) or part
    url, file = part.get("image_url", inner.get("file_url")), inner.get("file_id")
    url = fields(url).get("url") if isinstance(url, dict) else url
    data, media_type = inner.get("file_data", inner.get("data")), _AUDIO.get(str(inner.get("format")))
    for text in (url, data):
        if isinstance(text, str) and (data_url := _DATA_URL.fullmatch(text)):
            media_type, data, url = data_url[1], data_url[2], None
            break
    content = from_base64(data) or None
    if content is None and not isinstance(url, str) and not isinstance(file, str):
        return None
    make = Image if "image" in kind else File
    if content is not None:
        return make(media_type=media_type, name=inner.get("filename"), data=content)
    if isinstance(url, str):
        return make(name=inner.get("filename"), url=url)
    return make(name=inner.get("filename"), file=file, provider=PROVIDER)
