"""A context as Anthropic takes it: turns that alternate, results first, reasoning only where it may be."""

from __future__ import annotations

from typing import Any, Literal

from turnlog.errors import Invalid
from turnlog.interop.value import fields
from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import Context
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import Message
from turnlog.wire import NO_OUTPUT, Request, RequestBuilder, RequestMessage, kind_of, own
from turnlog.wire._media import PDF, PICTURES, Unsendable, load
from turnlog.wire._tool import Tools, tool_choice_of, tools_of
from turnlog.wire._turns import AlternatingTurns

PROVIDER = "anthropic"
ID_LIMIT = 64
NAME_LIMIT = 128
REASONING = ("thinking", "redacted_thinking")
PAUSES = ("pause_turn", "compaction")
"""How an answer ends that goes on as soon as it is sent back."""
_EXTRAS = ("caller", "citations", "server_name", "toolset_name", "type")


def request(
    context: Context,
    *,
    model: str,
    max_tokens: int,
    tool_choice: str | None = None,
    cache: Literal["5m", "1h"] | None = "5m",
    cache_marks: Literal["auto", "explicit"] = "auto",
    prefill: bool = False,
    account: str | None = None,
    **options: Any,
) -> Request:
    """The context for `client.messages.create(**request)`; `options` go along as they are.

    `tool_choice` is auto, none, required or a tool's name. `cache` is how long the prompt is cached (5m, 1h, None):
    the system prompt is marked, and the moving mark is Anthropic's own, so no block changes from turn to turn. With
    `cache_marks="explicit"` the tools and the last two messages of the user's are marked instead, for servers that
    know no automatic caching.
    `prefill` lets the assistant speak last, to go on from there. Reasoning and compactions of another `account` are
    left out.
    """
    if cache_marks not in ("auto", "explicit"):
        raise Invalid(f"cache_marks={cache_marks!r}", hint="auto or explicit")
    builder = RequestBuilder(context, PROVIDER, account, limit=ID_LIMIT)
    tools = tools_of(builder, limit=NAME_LIMIT)
    messages = _messages(builder, prefill=prefill, with_compaction=bool(options.get("compaction")))
    mark = None if cache is None else {"type": "ephemeral", "ttl": cache}
    request_fields: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
    if mark is not None and cache_marks == "auto":
        request_fields["cache_control"] = mark
    if context.system.strip():
        system = {"type": "text", "text": context.system}
        request_fields["system"] = [system if mark is None else {**system, "cache_control": mark}]
    listed, choice = _tools_and_choice(builder, tools, tool_choice, messages)
    if mark is not None and cache_marks == "explicit":
        _mark(mark, listed, messages)
    if listed:
        request_fields["tools"] = listed
    if choice is not None:
        request_fields["tool_choice"] = choice
    request_fields["messages"] = messages
    return Request({**request_fields, **options}, builder.report, context)


def _tools_and_choice(
    builder: RequestBuilder, tools: Tools, tool_choice: str | None, messages: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The tools and the tool choice as they are sent; tools that only the conversation names may not be called."""
    choice = tool_choice_of(builder, tool_choice, tools, limit=NAME_LIMIT)
    listed = _tools(tools)
    if not listed:
        listed = _undeclared(builder, messages)
        choice = "none" if listed else None
    if choice is None:
        return listed, None
    kinds = {"auto": "auto", "none": "none", "required": "any"}
    return listed, {"type": kinds[choice]} if choice in kinds else {"type": "tool", "name": choice}


def _mark(mark: dict[str, Any], tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """Mark the last tool, and the end of the last two messages of the user's: what was sent, and what will be.

    With the system prompt those are four, which is all that Anthropic takes; tools that come with marks keep them.
    """
    marked = sum("cache_control" in tool for tool in tools)
    candidates = (index for index, tool in reversed(list(enumerate(tools))) if not tool.get("defer_loading"))
    last = next(candidates, None)
    if last is not None and not marked:
        tools[last] = {**tools[last], "cache_control": mark}
    spoken = [message for message in reversed(messages) if message["role"] == "user"]
    for message in spoken[: max(0, min(2, 3 - marked))]:
        message["content"][-1] = {**message["content"][-1], "cache_control": mark}


def _tools(tools: Tools) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    for tool in tools.client:
        form: dict[str, Any] = {"name": tool.name, "input_schema": tool.schema}
        if tool.description:
            form["description"] = tool.description
        if tool.strict is not None:
            form["strict"] = tool.strict
        listed.append(form)
    return [*listed, *tools.native]


def _undeclared(builder: RequestBuilder, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools of a conversation that has none any more: Anthropic takes no calls of tools it was not told of."""
    blocks = [block for message in messages for block in message["content"]]
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    if names:
        builder.note("added", "tool", "the conversation has calls of tools that are no longer there")
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _messages(builder: RequestBuilder, *, prefill: bool, with_compaction: bool) -> list[dict[str, Any]]:
    messages = builder.turns(with_compaction=True)
    last = messages[-1] if messages else None
    paused = last is not None and _is_paused(last.message)
    turns = AlternatingTurns(builder, assistant="assistant", key="content", text=_text)
    _say_all(builder, turns, messages, paused=paused)
    _settle_reasoning(builder, turns.turns)
    turns.begin_at_least()
    end = turns.turns[-1]
    if not paused and not with_compaction:
        if prefill and end["role"] == "assistant" and _is_open_text(end):
            end["content"][-1]["text"] = end["content"][-1]["text"].rstrip()
        else:
            turns.end_with_user()
    return turns.turns


def _say_all(builder: RequestBuilder, turns: AlternatingTurns, messages: list[RequestMessage], *, paused: bool) -> None:
    pictures_behind: list[dict[str, Any]] = []
    """Pictures of results that failed: they stand behind all the results of their turn."""
    for turn in messages:
        if turn.role == "tool":
            results = [block for block in turn.blocks if isinstance(block, ToolResult)]
            turns.add("user", [_result(builder, block, turn, pictures_behind) for block in results])
            continue
        turns.add("user", pictures_behind)
        pictures_behind = []
        if turn.role == "assistant":
            content = _assistant(builder, turn, paused=paused and turn is messages[-1])
            turns.add("assistant", content, may_begin=bool(content) and content[0]["type"] == "compaction")
        elif turn.role == "system":
            turns.add_as_system(_user(builder, turn), turn.message)
        else:
            turns.add("user", _user(builder, turn))
    turns.add("user", pictures_behind)


def _is_paused(message: Message) -> bool:
    return (own(message, PROVIDER, None) or {}).get("stop_reason") in PAUSES


def _is_open_text(message: dict[str, Any]) -> bool:
    return message["content"][-1]["type"] == "text" and bool(message["content"][-1]["text"].rstrip())


def _settle_reasoning(builder: RequestBuilder, messages: list[dict[str, Any]]) -> None:
    """An assistant's message may not end in reasoning."""
    for message in messages:
        content = message["content"]
        while message["role"] == "assistant" and content and content[-1]["type"] in REASONING:
            content.pop()
            builder.note("left out", "thinking", "nothing was said after it")
    if any(not message["content"] for message in messages):
        whole = [message for message in messages if message["content"]]
        messages.clear()
        for message in whole:
            if messages and messages[-1]["role"] == message["role"]:
                messages[-1]["content"] += message["content"]
            else:
                messages.append(message)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _user(builder: RequestBuilder, turn: RequestMessage) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in turn.blocks:
        if isinstance(block, Text):
            content.append(_text(block.text))
        elif isinstance(block, (Image, File)):
            content.append(_media(builder, block, turn.message))
    return content


def _assistant(builder: RequestBuilder, turn: RequestMessage, *, paused: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    answered = {block.call for block in turn.blocks if isinstance(block, ToolResult)}
    called = {block.id for block in turn.blocks if isinstance(block, ToolCall)}
    for block in turn.blocks:
        own_meta = own(block, PROVIDER, builder.account) or {}
        extra = {key: value for key, value in own_meta.items() if key in _EXTRAS and _is_taken(key, value)}
        if isinstance(block, Text):
            if block.text.strip():
                content.append({**_text(block.text), **extra})
        elif isinstance(block, Thinking):
            content += _thinking(builder, block, turn)
        elif isinstance(block, ToolCall):
            form = {"type": "tool_use", "name": builder.tool_name(block.name, limit=NAME_LIMIT)}
            if block.by is None:
                form["id"] = builder.call_id(block, turn.message)
            elif block.id in answered or paused:
                form = {"type": "server_tool_use", "name": block.name, "id": block.id}
            else:
                builder.note("left out", "tool call", "the provider has not answered it", turn.message)
                continue
            content.append({**form, "input": builder.object_of(block, turn.message), **extra})
        elif isinstance(block, ToolResult):
            if block.call in called and isinstance(own_meta.get("block"), dict):
                content.append(own_meta["block"])
            else:
                builder.note("left out", "tool result", "its call is not there", turn.message)
        else:
            builder.note("left out", kind_of(block), "the assistant cannot send it", turn.message)
    return content


def _is_taken(key: str, value: Any) -> bool:
    """Whether Anthropic takes a field back. Of callers there have been others than it takes."""
    kind = str(fields(value).get("type"))
    return key != "caller" or kind == "direct" or kind.startswith("code_execution_")


def _thinking(builder: RequestBuilder, block: Thinking, turn: RequestMessage) -> list[dict[str, Any]]:
    data = fields(block.data)
    if compaction := compacted(block):
        return [{name: block.text if name == "content" else value for name, value in compaction[0].items()}]
    if builder.context.is_stale(turn.message):
        builder.note("left out", "thinking", "what came before it has been compacted or edited since", turn.message)
    elif isinstance(data.get("redacted"), str):
        return [{"type": "redacted_thinking", "data": data["redacted"]}]
    elif isinstance(data.get("signature"), str):
        return [{"type": "thinking", "thinking": block.text, "signature": data["signature"]}]
    else:
        builder.note("left out", "thinking", "it has no signature", turn.message)
    return []


def _result(
    builder: RequestBuilder, result: ToolResult, turn: RequestMessage, pictures_behind: list[dict[str, Any]]
) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "tool_result", "tool_use_id": builder.result_id(result)}
    content: list[dict[str, Any]] = []
    for part in builder.result_parts(result, turn.message):
        sent_part = _text(part.text) if isinstance(part, Text) else _media(builder, part, turn.message)
        if result.is_error and sent_part["type"] != "text":
            builder.note("changed", kind_of(part), "a failed result holds text only: it stands behind it", turn.message)
            pictures_behind.append(sent_part)
        else:
            content.append(sent_part)
    if content:
        form["content"] = content
    elif result.is_error:
        form["content"] = [_text(NO_OUTPUT)]
    if result.is_error:
        form["is_error"] = True
    return form


def _media(builder: RequestBuilder, block: Image | File, message: Message) -> dict[str, Any]:
    media = load(block, builder.context, PROVIDER)
    if isinstance(media, Unsendable):
        return _text(builder.left_out(block, media.why, message))
    kind = "image" if isinstance(block, Image) else "document"
    if media.file is not None:
        source: dict[str, Any] = {"type": "file", "file_id": media.file}
    elif media.url is not None:
        source = {"type": "url", "url": media.url}
    elif media.data and media.media_type in (*PICTURES, PDF):
        kind = "document" if media.media_type == PDF else "image"
        source = {"type": "base64", "media_type": media.media_type, "data": media.base64}
    elif (media.text or "").strip():
        kind = "document"
        source = {"type": "text", "media_type": "text/plain", "data": media.text}
    else:
        return _text(builder.left_out(block, f"{media.media_type or 'its kind'} is not accepted", message))
    titled = {"title": block.name} if kind == "document" and block.name else {}
    return {"type": kind, "source": source, **titled}
