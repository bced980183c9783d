"""A context as the Responses API takes it: a list of items."""

from __future__ import annotations

from typing import Any, cast

from turnlog.interop.value import fields, items
from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import Message
from turnlog.wire import NOTHING_BEFORE, RequestBuilder, RequestMessage, kind_of, own
from turnlog.wire._media import PICTURES, load
from turnlog.wire._name import wire_name
from turnlog.wire._tool import Tools
from turnlog.wire.openai.part import COMPACTION, ID_LIMIT, NAME_LIMIT, PROVIDER, RUN_BY_PROVIDER, arguments_of

_PHASES = ("commentary", "final_answer")
_DOCUMENTS = ("application/pdf", "application/json", "application/rtf", "application/xml", "application/msword")
_OFFICE = ("application/vnd.openxmlformats-", "application/vnd.ms-", "application/vnd.oasis.", "text/")


def request(builder: RequestBuilder, tools: Tools, choice: str | None, max_tokens: int | None) -> dict[str, Any]:
    """Everything of a request but its model."""
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


def _assistant(builder: RequestBuilder, turn: RequestMessage, custom: set[str]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    sealed: set[int] = set()
    """The items of compactions, by identity: they are sent as they are."""
    message = turn.message
    for block in turn.blocks:
        mine = own(block, PROVIDER, builder.account) or {}
        if isinstance(block, Text):
            if block.text.strip():
                phase = {"phase": mine["phase"]} if mine.get("phase") in _PHASES else {}
                sent.append({"type": "message", "role": "assistant", "content": block.text, **phase})
        elif isinstance(block, Thinking):
            item = fields(block.data).get("item")
            if compaction := compacted(block):
                window = [_compaction(one) if one.get("type") == COMPACTION else one for one in compaction]
                sealed.update(map(id, window))
                sent += window
            elif isinstance(item, dict) and cast("dict[str, Any]", item).get("encrypted_content"):
                sent.append(_reasoning(cast("dict[str, Any]", item)))
            else:
                builder.note("left out", "thinking", "it has no encrypted content", message)
        elif isinstance(block, ToolCall) and block.by is None:
            call, name = builder.call_id(block, message), builder.tool_name(block.name, limit=NAME_LIMIT)
            if mine.get("type") == "custom" and isinstance(block.input, str):
                custom.add(call)
                sent.append({"type": "custom_tool_call", "call_id": call, "name": name, "input": block.input})
            else:
                form = {"type": "function_call", "call_id": call, "name": name}
                sent.append({**form, "arguments": arguments_of(block)})
        elif isinstance(block, ToolCall) and isinstance(mine.get("item"), dict):
            sent.append(mine["item"])
        else:
            builder.note("left out", kind_of(block), "the assistant cannot send it", message)
    return _settled(builder, turn, sent, sealed)


def _settled(
    builder: RequestBuilder, turn: RequestMessage, sent: list[dict[str, Any]], sealed: set[int]
) -> list[dict[str, Any]]:
    """Reasoning goes with what it led to: nothing behind it, and it is left out; itself missing, so are run tools."""
    while sent and sent[-1]["type"] == "reasoning" and id(sent[-1]) not in sealed:
        sent.pop()
        builder.note("left out", "thinking", "nothing was said after it", turn.message)
    thoughts = sum(isinstance(block, Thinking) and not compacted(block) for block in turn.message.blocks)
    if thoughts == sum(item["type"] == "reasoning" and id(item) not in sealed for item in sent):
        return sent
    kept = [item for item in sent if item["type"] not in RUN_BY_PROVIDER or id(item) in sealed]
    if len(kept) < len(sent):
        builder.note("left out", "tool call", "the reasoning that led to it is left out", turn.message)
        return _settled(builder, turn, kept, sealed)
    return kept


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
    if isinstance(media, str):
        why = media
    else:
        kind = media.media_type
        is_picture = kind in PICTURES or (isinstance(block, Image) and not kind and media.data is None)
        why = f"{kind or 'its kind'} is not accepted"
        if is_picture:
            where = {"file_id": media.file} if media.file else {"image_url": media.url or media.data_url}
            return {"type": "input_image", "detail": "auto", **where}
        if media.file is not None:
            return {"type": "input_file", "file_id": media.file}
        if media.url is not None and isinstance(block, File):
            return {"type": "input_file", "file_url": media.url}
        if media.data and (kind in _DOCUMENTS or kind.startswith(_OFFICE) or media.text is not None):
            return {"type": "input_file", "filename": media.name or "file", "file_data": media.data_url}
    return _text(builder.left_out(block, why, message))
