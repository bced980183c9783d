"""Items of the Responses API and messages of Chat Completions, sent or received, as messages of ours."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, File, Image, Text, ToolResult, UnknownBlock
from turnlog.log.entry import Message, Role
from turnlog.wire import Deviation, Received, fields, items, kind_of, plain
from turnlog.wire.openai import chat, responses
from turnlog.wire.openai.part import PROVIDER, REFUSAL

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_OUTPUT = "_output"


def messages(given: Iterable[Any], *, account: str | None = None) -> Received:
    """A message for each item, in their order; `report` names what a message cannot say of its item."""
    made = Received()
    for index, item in enumerate(given):
        message = message_of(plain(item), account)
        made.append(message)
        for block in message.blocks:
            if isinstance(block, UnknownBlock):
                made.report.append(Deviation("changed", kind_of(block), "it is kept, and not understood", index))
        if not message.blocks:
            made.report.append(Deviation("left out", str(plain(item).get("type")), "it says nothing", index))
    return made


def message_of(item: dict[str, Any], account: str | None = None) -> Message:
    """One item as one message. What nobody knows has an unknown block, and is an assistant's."""
    kind, role = item.get("type"), item.get("role")
    if isinstance(role, str) and kind in (None, "message"):
        if role not in _ROLES:
            raise Invalid(f"the role {role!r:.40}", hint=f"one of {', '.join(_ROLES)}")
        if role == "tool":
            return _result(str(item.get("tool_call_id") or ""), item.get("content"), account)
        if role == "assistant":
            return Message(role="assistant", blocks=chat.said_blocks(item, account))
        return Message(role=_ROLES[role], blocks=_parts(item.get("content"), account))
    if isinstance(kind, str) and kind.endswith(_OUTPUT) and "call_id" in item:
        return _result(str(item["call_id"]), item.get("output"), account)
    return Message(role="assistant", blocks=responses.item_blocks(item, {}, account))


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
    data, media_type = inner.get("file_data", inner.get("data")), None
    for text in (url, data):
        if isinstance(text, str) and (found := _DATA_URL.fullmatch(text)):
            media_type, data, url = found[1], found[2], None
            break
    try:
        content = b64decode(data, validate=True) if isinstance(data, str) else None
    except binascii.Error:
        content = None
    if content is None and not isinstance(url, str) and not isinstance(file, str):
        return None
    make = Image if "image" in kind else File
    if content is not None:
        return make(media_type=media_type, name=inner.get("filename"), data=content)
    if isinstance(url, str):
        return make(name=inner.get("filename"), url=url)
    return make(name=inner.get("filename"), file=file, provider=PROVIDER)
