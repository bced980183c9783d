"""Messages of a3s and ours: tool results are a user's there, and reasoning is a field beside the content."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, cast

import msgspec

from turnlog.formats._shared.foreign import original, unknown
from turnlog.formats._shared.json import same_again
from turnlog.formats._shared.origin import origin_of
from turnlog.formats._shared.patch import besides
from turnlog.formats._shared.rust import by_key
from turnlog.formats._shared.tally import Tally, stand_in
from turnlog.formats._shared.value import fields
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Message

NAME = "a3s"
_ROLES = ("system", "user", "assistant", "tool")
_APART = "\n\n"
_INSIDE = "="
"""In what a block's origin says: the same for the blocks inside a tool result."""


def read_message(raw: Any, at: datetime | None, tell: Callable[[str], None], run: str | None = None) -> list[Message]:
    """One message as one entry, or as two where tool results and what a user said are mixed; none if it is none."""
    record = fields(raw)
    content = record.get("content")
    if isinstance(content, str):
        tell("content that is a text: read as one block")
        content = [{"type": "text", "text": content}]
        record = {**record, "content": content}
    if not isinstance(record.get("role"), str) or not isinstance(content, list):
        tell("a message without role or content: left out")
        return []
    blocks = [_block(item, tell) for item in cast("list[Any]", content)]
    role = record["role"]
    origin: dict[str, Any] = {"agent": NAME, **({"run": run} if run is not None else {})}
    is_mixed = role != "assistant" and any(isinstance(block, ToolResult) for block in blocks)
    results = [index for index, block in enumerate(blocks) if is_mixed and isinstance(block, ToolResult)]
    rest = [index for index in range(len(blocks)) if index not in results] if is_mixed else list(range(len(blocks)))
    ours = role if role in _ROLES else "user"
    messages: list[Message] = []
    if results:
        first = Message(role="tool", blocks=[blocks[i] for i in results], at=at, origin=origin)
        messages.append(_with_extras(first, record, results, is_first=True))
    thought = record.get("reasoning_content")
    if not results or rest or isinstance(thought, str):
        content_blocks: list[AnyBlock] = [Thinking(text=thought)] if isinstance(thought, str) else []
        whole = Message(role=ours, blocks=[*content_blocks, *(blocks[i] for i in rest)], at=at, origin=origin)
        messages.append(_with_extras(whole, record, rest, is_first=not results))
    return messages


def _with_extras(message: Message, record: dict[str, Any], places: list[int], *, is_first: bool) -> Message:
    """The message with a note of what its own fields would not say when it is written again."""
    origin: dict[str, Any] = dict(message.origin)
    plain = own_record(message, Tally())
    extras: dict[str, Any] = {}
    blocks = [block for block in message.blocks if not isinstance(block, Thinking)]
    for index, (block, place, now) in enumerate(zip(blocks, places, plain["content"], strict=True)):
        extra = {} if isinstance(block, UnknownBlock) else _extra(record["content"][place], now)
        if extra:
            extras[str(index)] = extra
    if extras:
        origin["blocks"] = extras
    if is_first:
        outer = {key: value for key, value in record.items() if key not in ("content", "reasoning_content")}
        more = besides(outer, plain)
        if "reasoning_content" in record and not isinstance(record["reasoning_content"], str):
            more["reasoning_content"] = record["reasoning_content"]
        if more:
            origin["message"] = more
    else:
        origin["joins"] = places
    return msgspec.structs.replace(message, origin=origin)


def _extra(was: Any, now: dict[str, Any]) -> dict[str, Any]:
    extra = besides(was, now)
    if now.get("type") != "tool_result":
        return extra
    extra.pop("content", None)
    if was.get("is_error") is None:
        extra["is_error"] = None
    if isinstance(now["content"], list):
        pairs = zip(was["content"], cast("list[Any]", now["content"]), strict=True)
        inner = {str(i): more for i, (old, new) in enumerate(pairs) if (more := besides(old, fields(new)))}
        extra |= {_INSIDE: inner} if inner else {}
    return extra


def _block(raw: Any, tell: Callable[[str], None]) -> AnyBlock:
    record = fields(raw)
    match record.get("type"):
        case "text" if isinstance(record.get("text"), str):
            return Text(text=record["text"])
        case "image" if (picture := _picture(record)) is not None:
            return picture
        case "tool_use" if isinstance(record.get("id"), str) and isinstance(record.get("name"), str):
            return ToolCall(id=record["id"], name=record["name"], input=record.get("input"))
        case "tool_result" if isinstance(record.get("tool_use_id"), str):
            content = record.get("content")
            if isinstance(content, list):
                inner = [_block(item, tell) for item in cast("list[Any]", content)]
                return ToolResult(call=record["tool_use_id"], content=inner, is_error=record.get("is_error") is True)
            if isinstance(content, str):
                return ToolResult(call=record["tool_use_id"], content=content, is_error=record.get("is_error") is True)
            kind: Any = "tool_result"
        case kind:
            pass
    tell(f"a block of the unknown type {kind!r:.80}: kept as it is")
    return unknown(NAME, raw)


def _picture(record: dict[str, Any]) -> Image | None:
    source = fields(record.get("source"))
    data, media = source.get("data"), source.get("media_type")
    if source.get("type") != "base64" or not isinstance(data, str) or not isinstance(media, str) or len(source) != 3:
        return None
    picture = same_again(data)
    return Image(media_type=media, data=picture) if picture is not None else None


def own_record(message: Message, tally: Tally) -> dict[str, Any]:
    """A message that was a3s' own, as it was; of one in two parts, this part."""
    origin = origin_of(message, NAME) or {}
    extras = fields(origin.get("blocks"))
    thoughts = [block.text for block in message.blocks if isinstance(block, Thinking)]
    content: list[Any] = []
    for block in message.blocks:
        if isinstance(block, Thinking):
            continue
        if isinstance(block, UnknownBlock):
            content.append(original(NAME, block))
        else:
            content.append(_with(_record(block, tally, is_own=True), fields(extras.get(str(len(content))))))
    record: dict[str, Any] = {"role": "user" if message.role == "tool" else message.role, "content": content}
    if thoughts:
        record["reasoning_content"] = _APART.join(thoughts)
    return {**record, **fields(origin.get("message"))}


def _with(record: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """A block with what its original said besides, as long as it still is the original."""
    added = {key: value for key, value in extra.items() if key not in record and key != _INSIDE}
    if "is_error" in extra and record.get("is_error") is False:
        added["is_error"] = extra["is_error"]
    whole = {**record, **added}
    for index, more in fields(extra.get(_INSIDE)).items():
        inner: Any = whole.get("content")
        if isinstance(inner, list) and int(index) < len(cast("list[Any]", inner)):
            inner[int(index)] = _with(fields(inner[int(index)]), fields(more))
    return whole


def join(first: dict[str, Any], second: dict[str, Any], places: list[Any]) -> None:
    """Put the second part of a message back between the blocks of the first."""
    for place, block in zip(places, second["content"], strict=False):
        first["content"].insert(place if isinstance(place, int) else len(first["content"]), block)
    first["content"] += second["content"][len(places) :]
    if "reasoning_content" in second:
        first["reasoning_content"] = second["reasoning_content"]


def records_of(message: Message, tally: Tally) -> Iterator[dict[str, Any]]:
    """A message that is not a3s': each tool result in a message of its own, as a3s does it."""
    for block in message.blocks:
        if isinstance(block, ToolResult) and message.role == "tool":
            yield {"role": "user", "content": [_record(block, tally)]}
    rest = [block for block in message.blocks if message.role != "tool" or not isinstance(block, ToolResult)]
    if not rest:
        return
    role = message.role
    if role == "system":
        tally.add("system message", "a user's message")
    content = [
        {"type": "text", "text": stand_in(block)} if isinstance(block, ToolResult) else _record(block, tally)
        for block in rest
        if not isinstance(block, Thinking)
    ]
    record: dict[str, Any] = {"role": "assistant" if role == "assistant" else "user", "content": content}
    thoughts = [block for block in rest if isinstance(block, Thinking)]
    tally.add("sealed reasoning", "its readable part", sum(block.data is not None for block in thoughts))
    if thoughts:
        tally.add("separate texts", "one text", int(len(thoughts) > 1))
        record["reasoning_content"] = _APART.join(block.text for block in thoughts)
    yield record


def _record(block: AnyBlock, tally: Tally, *, is_own: bool = False) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, Image) and (found := tally.data(block)) is not None:
        data = base64.b64encode(found).decode()
        source = {"type": "base64", "media_type": block.media_type or "application/octet-stream", "data": data}
        return {"type": "image", "source": source}
    if isinstance(block, ToolCall) and block.by is None:
        given = by_key(block.input) if is_own else tally.free(block.input)
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
    if isinstance(block, ToolResult):
        content: Any = block.content
        if not isinstance(content, str):
            content = [_inner(item, tally, is_own) for item in content]
        return {"type": "tool_result", "tool_use_id": block.call, "content": content, "is_error": block.is_error}
    what = "provider's tool call" if isinstance(block, ToolCall) else str(block.__struct_config__.tag)
    tally.add(block.kind if isinstance(block, UnknownBlock) else what, "a text that says so")
    return {"type": "text", "text": stand_in(block)}


def _inner(block: AnyBlock, tally: Tally, is_own: bool) -> Any:
    """A part of a tool result, which is text or a picture."""
    if is_own and isinstance(block, UnknownBlock):
        return original(NAME, block)
    if isinstance(block, (Text, Image, UnknownBlock)):
        return _record(block, tally)
    return {"type": "text", "text": stand_in(block)}
