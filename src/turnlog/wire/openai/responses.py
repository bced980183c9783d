"""OpenAI's Responses API: a conversation is a list of items."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Message, Stop
from turnlog.log.shown.nativecompaction import compacted
from turnlog.log.usage import Usage
from turnlog.wire import (
    NOTHING_BEFORE,
    RequestBuilder,
    RequestMessage,
    count,
    fields,
    items,
    kind_of,
    own,
    tagged,
)
from turnlog.wire._media import PICTURES, load
from turnlog.wire._name import log_name, wire_name
from turnlog.wire._tool import Tools
from turnlog.wire.openai.part import ID_LIMIT, NAME_LIMIT, PROVIDER, REFUSAL, arguments_of, input_of

_RUN_THERE = frozenset((
    "code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call", "mcp_list_tools",
    "tool_search_call", "tool_search_output", "web_search_call",
))  # fmt: skip
COMPACTION = "compaction"
_PHASES = ("commentary", "final_answer")
_DOCUMENTS = ("application/pdf", "application/json", "application/rtf", "application/xml", "application/msword")
_OFFICE = ("application/vnd.openxmlformats-", "application/vnd.ms-", "application/vnd.oasis.", "text/")


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


def request(work: RequestBuilder, tools: Tools, choice: str | None, max_tokens: int | None) -> dict[str, Any]:
    """Everything of a request but its model."""
    made: dict[str, Any] = {}
    if work.context.system.strip():
        made["instructions"] = work.context.system
    if tools:
        made["tools"] = [
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
        made["tool_choice"] = {"type": "function", "name": choice} if named else choice
    if max_tokens is not None:
        made["max_output_tokens"] = max_tokens
    made["input"] = _items(work)
    return made


def _items(work: RequestBuilder) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    custom: set[str] = set()
    """The calls of tools that take text instead of JSON."""
    for turn in work.turns(compacts=True):
        if turn.role == "tool":
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    made.append(_result(work, block, turn.message, custom))
        elif turn.role == "assistant":
            made += _assistant(work, turn, custom)
        else:
            content: list[dict[str, Any]] = []
            for block in turn.blocks:
                if isinstance(block, (Text, Image, File)):
                    content.append(_content(work, block, turn.message))
            if content:
                role = "developer" if turn.role == "system" else "user"
                made.append({"type": "message", "role": role, "content": content})
    if not made:
        work.note("added", "message", "nothing else is left to send")
        made.append({"type": "message", "role": "user", "content": [_text(NOTHING_BEFORE)]})
    return made


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _assistant(work: RequestBuilder, turn: RequestMessage, custom: set[str]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    message = turn.message
    for block in turn.blocks:
        mine = own(block, PROVIDER, work.account) or {}
        if isinstance(block, Text):
            if block.text.strip():
                phase = {"phase": mine["phase"]} if mine.get("phase") in _PHASES else {}
                made.append({"type": "message", "role": "assistant", "content": block.text, **phase})
        elif isinstance(block, Thinking):
            item = fields(block.data).get("item")
            if compaction := compacted(block):
                made += [_compaction(one) if one.get("type") == COMPACTION else one for one in compaction]
            elif isinstance(item, dict) and cast("dict[str, Any]", item).get("encrypted_content"):
                made.append(_reasoning(cast("dict[str, Any]", item)))
            else:
                work.note("left out", "thinking", "it has no encrypted content", message)
        elif isinstance(block, ToolCall) and block.by is None:
            id, name = work.call_id(block, message), work.tool_name(block.name, limit=NAME_LIMIT)
            if mine.get("type") == "custom" and isinstance(block.input, str):
                custom.add(id)
                made.append({"type": "custom_tool_call", "call_id": id, "name": name, "input": block.input})
            else:
                form = {"type": "function_call", "call_id": id, "name": name}
                made.append({**form, "arguments": arguments_of(block)})
        elif isinstance(block, ToolCall) and isinstance(mine.get("item"), dict):
            made.append(mine["item"])
        else:
            work.note("left out", kind_of(block), "the assistant cannot send it", message)
    return _settled(work, turn, made)


def _settled(work: RequestBuilder, turn: RequestMessage, made: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reasoning goes with what it led to: nothing behind it, and it is left out; itself missing, so are run tools."""
    while made and made[-1]["type"] == "reasoning":
        made.pop()
        work.note("left out", "thinking", "nothing was said after it", turn.message)
    thoughts = sum(isinstance(block, Thinking) and not compacted(block) for block in turn.message.blocks)
    if thoughts == sum(item["type"] == "reasoning" for item in made):
        return made
    kept = [item for item in made if item["type"] not in _RUN_THERE]
    if len(kept) < len(made):
        work.note("left out", "tool call", "the reasoning that led to it is left out", turn.message)
        return _settled(work, turn, kept)
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


def _result(work: RequestBuilder, result: ToolResult, message: Message, custom: set[str]) -> dict[str, Any]:
    id = work.result_id(result)
    parts = [_content(work, part, message) for part in work.result_parts(result, message)]
    if result.is_error:
        parts.insert(0, _text("[error]"))
    plain = all(part["type"] == "input_text" for part in parts)
    output = "\n".join(part["text"] for part in parts) if plain else parts
    return {
        "type": "custom_tool_call_output" if id in custom else "function_call_output",
        "call_id": id,
        "output": output,
    }


def _content(work: RequestBuilder, block: Text | Image | File, message: Message) -> dict[str, Any]:
    if isinstance(block, Text):
        return _text(block.text)
    media = load(block, work.context, PROVIDER)
    name = kind_of(block)
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
    work.note("left out", name, why, message)
    return _text(f"[{name} left out: {why}]")


# ── responses ─────────────────────────────────────────────────────────────────────────────────────


def draft(data: dict[str, Any], known: dict[str, str], account: str | None) -> Message:
    """A response as one message."""
    output = items(data.get("output"))
    if data.get("object") == "response.compaction" and output:  # a whole window, to be sent as it is
        blocks: list[AnyBlock] = [_compacted(output, account)]
    else:
        blocks = [block for item in output for block in item_blocks(item, known, account)]
    stop, error = _stop(data, blocks)
    partial = data.get("partial")
    return Message(
        role="assistant",
        blocks=blocks,
        model=data.get("model"),
        request=data.get("id"),
        usage=usage_of(data["usage"]) if isinstance(data.get("usage"), dict) else None,
        stop=stop,
        error=error,
        meta=tagged(PROVIDER, {"partial": partial}, None),
    )


def _stop(data: dict[str, Any], blocks: list[AnyBlock]) -> tuple[Stop, Any]:
    status = data.get("status", "completed")
    reason = fields(data.get("incomplete_details")).get("reason")
    if data.get("error"):
        return "error", data["error"]
    if status == "incomplete":
        if reason == "content_filter":
            return "error", {"type": REFUSAL, "reason": reason}
        return ("length" if reason in ("max_output_tokens", "max_messages") else "aborted"), None
    if status != "completed":
        return ("error" if status == "failed" else "aborted"), None
    if any((own(block, PROVIDER, None) or {}).get(REFUSAL) for block in blocks):
        return "error", {"type": REFUSAL}
    called = any(isinstance(block, ToolCall) and block.by is None for block in blocks)
    return ("tool_use" if called else "end"), None


def item_blocks(item: dict[str, Any], known: dict[str, str], account: str | None) -> list[AnyBlock]:
    """What an item of a response is made of."""
    kind = item.get("type")
    if kind == "message":
        return _texts(item, account)
    if kind == "reasoning":
        texts = [str(part.get("text") or "") for part in items(item.get("summary")) or items(item.get("content"))]
        kept = {key: value for key, value in item.items() if key not in ("type", "status")}
        data = {"item": kept} if account is None else {"item": kept, "account": account}
        return [Thinking(text="\n\n".join(texts), provider=PROVIDER, data=data)]
    if kind == COMPACTION and item.get("encrypted_content"):
        return [_compacted([item], account)]
    if kind in ("function_call", "custom_tool_call"):
        is_custom = kind == "custom_tool_call"
        return [
            ToolCall(
                id=log_name(str(item.get("call_id") or item.get("id") or ""), known),
                name=log_name(str(item.get("name") or ""), known),
                input=item.get("input") if is_custom else input_of(item.get("arguments")),
                meta=tagged(PROVIDER, {"type": "custom"}, account) if is_custom else None,
            )
        ]
    if kind in _RUN_THERE:
        about = next((item[key] for key in ("action", "arguments", "queries", "code") if item.get(key)), None)
        name = str(item.get("name") or kind.removesuffix("_call"))
        meta = tagged(PROVIDER, {"item": item}, account)
        return [ToolCall(id=str(item.get("id") or ""), name=name, input=input_of(about), by="provider", meta=meta)]
    return [UnknownBlock(kind=str(kind), json=msgspec.json.encode(item).decode())]


def _compacted(output: list[dict[str, Any]], account: str | None) -> Thinking:
    data = {"compaction": output} if account is None else {"compaction": output, "account": account}
    return Thinking(provider=PROVIDER, data=data)


def _texts(item: dict[str, Any], account: str | None) -> list[AnyBlock]:
    """What the model said. Also of a message as it is sent, where the content may be text alone."""
    content = item.get("content")
    parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else items(content)
    blocks: list[AnyBlock] = []
    for part in parts:
        refusal = part.get("refusal")
        mine = {
            "phase": item.get("phase"),
            "annotations": part.get("annotations"),
            REFUSAL: refusal is not None or None,
        }
        text = str(refusal if refusal is not None else part.get("text") or "")
        if text:
            blocks.append(Text(text=text, meta=tagged(PROVIDER, mine, account)))
    return blocks


def usage_of(raw: dict[str, Any]) -> Usage:
    """OpenAI's input includes what was cached; of both APIs."""
    chat = "prompt_tokens" in raw
    given, taken = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    cached = count(raw, f"{given}_details", "cached_tokens")
    written = count(raw, f"{given}_details", "cache_write_tokens")
    return Usage(
        input_tokens=max(0, count(raw, given) - cached - written),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=count(raw, taken),
        reasoning_tokens=count(raw, f"{taken}_details", "reasoning_tokens"),
    )
