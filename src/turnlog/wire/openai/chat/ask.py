"""A context as Chat Completions takes it: a list of messages."""

from __future__ import annotations

from typing import Any

from turnlog.log.block import File, Image, Text, ToolCall, ToolResult
from turnlog.log.entry import Message
from turnlog.wire import NOTHING_BEFORE, RequestBuilder, RequestMessage, kind_of, own
from turnlog.wire._media import PDF, PICTURES, Unsendable, load
from turnlog.wire._tool import Tools
from turnlog.wire.openai.part import NAME_LIMIT, PROVIDER, REFUSAL, arguments_of

_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def request(builder: RequestBuilder, tools: Tools, choice: str | None, max_tokens: int | None) -> dict[str, Any]:
    """The body of a request, without `model`."""
    request_fields: dict[str, Any] = {}
    listed: list[dict[str, Any]] = []
    for tool in tools.client:
        form: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
        listed.append(
            {"type": "function", "function": form if tool.strict is None else {**form, "strict": tool.strict}}
        )
    for native in tools.native:
        if native.get("type") == "custom":
            listed.append(native)
        else:
            builder.note("left out", "tool", f"{native.get('type')} is only in the Responses API")
    if listed:
        request_fields["tools"] = listed
    if choice is not None and not listed:
        builder.note("left out", "tool choice", "there are no tools")
    elif choice is not None:
        named = choice not in ("auto", "none", "required")
        request_fields["tool_choice"] = {"type": "function", "function": {"name": choice}} if named else choice
    if max_tokens is not None:
        request_fields["max_completion_tokens"] = max_tokens
    request_fields["messages"] = _messages(builder)
    return request_fields


def _messages(builder: RequestBuilder) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if builder.context.system.strip():
        messages.append({"role": "system", "content": builder.context.system})
    media_behind: list[dict[str, Any]] = []
    """Pictures and files of results: a tool's message holds text only, so they come behind as the user's."""
    for turn in builder.turns():
        if turn.role == "tool":
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    messages.append(_result(builder, block, turn.message, media_behind))
            continue
        if media_behind:
            messages.append({"role": "user", "content": list(media_behind)})
            media_behind.clear()
        if turn.role == "assistant":
            messages += _assistant(builder, turn)
            continue
        content: list[dict[str, Any]] = []
        for block in turn.blocks:
            if isinstance(block, Text) or (isinstance(block, (Image, File)) and turn.role == "user"):
                content.append(_content(builder, block, turn.message))
        if content:
            messages.append({"role": turn.role, "content": _shortest(content)})
    if media_behind:
        messages.append({"role": "user", "content": media_behind})
    if all(message["role"] == "system" for message in messages):
        builder.note("added", "message", "nobody but the system says anything")
        messages.append({"role": "user", "content": NOTHING_BEFORE})
    return messages


def _shortest(content: list[dict[str, Any]]) -> Any:
    return content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _assistant(builder: RequestBuilder, turn: RequestMessage) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in turn.blocks:
        own_meta = own(block, PROVIDER, builder.account) or {}
        if isinstance(block, Text):
            if block.text.strip():
                refused = bool(own_meta.get(REFUSAL))
                content.append({"type": REFUSAL, REFUSAL: block.text} if refused else _text(block.text))
        elif isinstance(block, ToolCall) and block.by is None:
            id, name = builder.call_id(block, turn.message), builder.tool_name(block.name, limit=NAME_LIMIT)
            if own_meta.get("type") == "custom" and isinstance(block.input, str):
                calls.append({"id": id, "type": "custom", "custom": {"name": name, "input": block.input}})
            else:
                form = {"name": name, "arguments": arguments_of(block)}
                calls.append({"id": id, "type": "function", "function": form})
        else:
            builder.note("left out", kind_of(block), "Chat Completions has no place for it", turn.message)
    answer: dict[str, Any] = {"role": "assistant"}
    if content:
        answer["content"] = _shortest(content)
    if calls:
        answer["tool_calls"] = calls
    return [answer] if len(answer) > 1 else []


def _result(
    builder: RequestBuilder, result: ToolResult, message: Message, media_behind: list[dict[str, Any]]
) -> dict[str, Any]:
    id = builder.result_id(result)
    texts = ["[error]"] if result.is_error else []
    for part in builder.result_parts(result, message):
        sent_part = _content(builder, part, message)
        if sent_part["type"] == "text":
            texts.append(sent_part["text"])
        else:
            name = kind_of(part)
            texts.append(f"[the {name} is in the next message]")
            media_behind.append(sent_part)
            builder.note("changed", name, "a result holds text only: it comes behind the results", message)
    return {"role": "tool", "tool_call_id": id, "content": "\n".join(texts)}


def _content(builder: RequestBuilder, block: Text | Image | File, message: Message) -> dict[str, Any]:
    if isinstance(block, Text):
        return _text(block.text)
    media = load(block, builder.context, PROVIDER)
    if isinstance(media, Unsendable):
        return _text(builder.left_out(block, media.why, message))
    kind = media.media_type
    is_picture = kind in PICTURES or (isinstance(block, Image) and not kind)
    if is_picture and (media.url or (media.data and kind)):
        return {"type": "image_url", "image_url": {"url": media.url or media.data_url}}
    if isinstance(block, File) and media.file is not None:
        return {"type": "file", "file": {"file_id": media.file}}
    if media.data and kind == PDF:
        return {"type": "file", "file": {"filename": media.name or "file.pdf", "file_data": media.data_url}}
    if media.data and kind in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": media.base64, "format": _SOUNDS[kind]}}
    if (media.text or "").strip():
        return _text(f"[{media.name or 'file'}]\n{media.text}")
    return _text(builder.left_out(block, f"{kind or 'its kind'} is not accepted", message))
