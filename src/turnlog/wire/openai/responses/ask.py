"""A context as the Responses API takes it: a list of items."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from turnlog.interop.value import fields, items
from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import Message
from turnlog.wire import NOTHING_BEFORE, RequestBuilder, RequestMessage, kind_of, own
from turnlog.wire._media import PICTURES, Unsendable, load
from turnlog.wire._name import wire_name
from turnlog.wire._tool import Tools
from turnlog.wire.openai.part import COMPACTION, ID_LIMIT, NAME_LIMIT, PROVIDER, RUN_BY_PROVIDER, arguments_of

_PHASES = ("commentary", "final_answer")
_FILE_TYPES = ("application/pdf", "application/json", "application/rtf", "application/xml", "application/msword")
_FILE_TYPE_PREFIXES = ("application/vnd.openxmlformats-", "application/vnd.ms-", "application/vnd.oasis.", "text/")


def request(builder: RequestBuilder, tools: Tools, choice: str | None, max_tokens: int | None) -> dict[str, Any]:
    """The body of a request, without `model`."""
    request_fields: dict[str, Any] = {}
    if builder.context.system.strip():
        request_fields["instructions"] = builder.context.system
    if tools:
        request_fields["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": bool(tool.strict),
            }
            for tool in tools.client
        ] + tools.native
    if choice is not None:
        named = choice not in ("auto", "none", "required")
        request_fields["tool_choice"] = {"type": "function", "name": choice} if named else choice
    if max_tokens is not None:
        request_fields["max_output_tokens"] = max_tokens
    request_fields["input"] = _items(builder)
    return request_fields


def _items(builder: RequestBuilder) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    custom: set[str] = set()
    """The calls of tools that take text instead of JSON."""
    for turn in builder.turns(with_compaction=True):
        if turn.role == "tool":
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    sent.append(_result(builder, block, turn.message, custom))
        elif turn.role == "assistant":
            sent += _assistant(builder, turn, custom)
        else:
            content: list[dict[str, Any]] = []
            for block in turn.blocks:
                if isinstance(block, (Text, Image, File)):
                    content.append(_content(builder, block, turn.message))
            if content:
                role = "developer" if turn.role == "system" else "user"
                sent.append({"type": "message", "role": role, "content": content})
    if not sent:
        builder.note("added", "message", "nothing else is left to send")
        sent.append({"type": "message", "role": "user", "content": [_text(NOTHING_BEFORE)]})
    return sent


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


class SentItem(Struct):
    """An item of the assistant's. A sealed one belongs to a compaction, which is sent as it is."""

    json: dict[str, Any]
    is_sealed: bool = False

    def is_of(self, *types: str) -> bool:
        """Whether it is an item of one of these types, and not sealed."""
        return self.json["type"] in types and not self.is_sealed


def _assistant(builder: RequestBuilder, turn: RequestMessage, custom: set[str]) -> list[dict[str, Any]]:
    sent: list[SentItem] = []
    message = turn.message
    for block in turn.blocks:
        own_meta = own(block, PROVIDER, builder.account) or {}
        if isinstance(block, Text):
            if block.text.strip():
                phase = {"phase": own_meta["phase"]} if own_meta.get("phase") in _PHASES else {}
                sent.append(SentItem({"type": "message", "role": "assistant", "content": block.text, **phase}))
        elif isinstance(block, Thinking):
            sent += _thinking(builder, block, message)
        elif isinstance(block, ToolCall) and block.by is None:
            sent.append(SentItem(_call(builder, block, message, own_meta, custom)))
        elif isinstance(block, ToolCall) and isinstance(own_meta.get("item"), dict):
            sent.append(SentItem(own_meta["item"]))
        else:
            builder.note("left out", kind_of(block), "the assistant cannot send it", message)
    return [item.json for item in _settled(builder, message, sent)]


def _thinking(builder: RequestBuilder, block: Thinking, message: Message) -> list[SentItem]:
    if compaction := compacted(block):
        window = (_compaction(item) if item.get("type") == COMPACTION else item for item in compaction)
        return [SentItem(item, is_sealed=True) for item in window]
    item = fields(fields(block.data).get("item"))
    if item.get("encrypted_content"):
        return [SentItem(_reasoning(item))]
    builder.note("left out", "thinking", "it has no encrypted content", message)
    return []


def _call(
    builder: RequestBuilder, block: ToolCall, message: Message, own_meta: dict[str, Any], custom: set[str]
) -> dict[str, Any]:
    call, name = builder.call_id(block, message), builder.tool_name(block.name, limit=NAME_LIMIT)
    if own_meta.get("type") == "custom" and isinstance(block.input, str):
        custom.add(call)
        return {"type": "custom_tool_call", "call_id": call, "name": name, "input": block.input}
    return {"type": "function_call", "call_id": call, "name": name, "arguments": arguments_of(block)}


def _settled(builder: RequestBuilder, message: Message, sent: list[SentItem]) -> list[SentItem]:
    """Leave out reasoning that nothing follows, and calls run by OpenAI whose reasoning is left out."""
    _drop_last_reasoning(builder, message, sent)
    thoughts = sum(isinstance(block, Thinking) and not compacted(block) for block in message.blocks)
    if thoughts == sum(item.is_of("reasoning") for item in sent):
        return sent
    kept = [item for item in sent if not item.is_of(*RUN_BY_PROVIDER)]
    if len(kept) < len(sent):
        builder.note("left out", "tool call", "the reasoning that led to it is left out", message)
        _drop_last_reasoning(builder, message, kept)
    return kept


def _drop_last_reasoning(builder: RequestBuilder, message: Message, sent: list[SentItem]) -> None:
    while sent and sent[-1].is_of("reasoning"):
        sent.pop()
        builder.note("left out", "thinking", "nothing was said after it", message)


def _compaction(item: dict[str, Any]) -> dict[str, Any]:
    """A compaction as it may be sent: OpenAI says more of it than it takes back."""
    return {key: value for key, value in item.items() if key in ("type", "id", "encrypted_content")}


def _reasoning(item: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in item.items() if key in ("id", "summary", "encrypted_content", "content")}
    if kept.get("content") is None:
        kept.pop("content", None)
    id = wire_name(str(kept.get("id") or ""), limit=ID_LIMIT)
    return {"type": "reasoning", **kept, "id": id, "summary": items(kept.get("summary"))}


def _result(builder: RequestBuilder, result: ToolResult, message: Message, custom: set[str]) -> dict[str, Any]:
    id = builder.result_id(result)
    parts = [_content(builder, part, message) for part in builder.result_parts(result, message)]
    if result.is_error:
        parts.insert(0, _text("[error]"))
    plain = all(part["type"] == "input_text" for part in parts)
    output = "\n".join(part["text"] for part in parts) if plain else parts
    return {
        "type": "custom_tool_call_output" if id in custom else "function_call_output",
        "call_id": id,
        "output": output,
    }


def _content(builder: RequestBuilder, block: Text | Image | File, message: Message) -> dict[str, Any]:
    if isinstance(block, Text):
        return _text(block.text)
    media = load(block, builder.context, PROVIDER)
    if isinstance(media, Unsendable):
        return _text(builder.left_out(block, media.why, message))
    kind = media.media_type
    if kind in PICTURES or (isinstance(block, Image) and not kind and media.data is None):
        where = {"file_id": media.file} if media.file else {"image_url": media.url or media.data_url}
        return {"type": "input_image", "detail": "auto", **where}
    if media.file is not None:
        return {"type": "input_file", "file_id": media.file}
    if media.url is not None and isinstance(block, File):
        return {"type": "input_file", "file_url": media.url}
    if media.data and (kind in _FILE_TYPES or kind.startswith(_FILE_TYPE_PREFIXES) or media.text is not None):
        return {"type": "input_file", "filename": media.name or "file", "file_data": media.data_url}
    return _text(builder.left_out(block, f"{kind or 'its kind'} is not accepted", message))
