"""A context as Anthropic takes it: turns that alternate, results first, reasoning only where it may be."""

from __future__ import annotations

from typing import Any, Literal

from turnlog.errors import Invalid
from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import Context
from turnlog.log.entry import Message
from turnlog.log.shown.nativecompaction import compacted
from turnlog.wire import GO_ON, NO_OUTPUT, NOTHING_BEFORE, Request, RequestBuilder, RequestMessage, fields, kind_of, own
from turnlog.wire._media import PDF, PICTURES, load
from turnlog.wire._tool import Tools, chosen, declared

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
    work = RequestBuilder(context, PROVIDER, account, limit=ID_LIMIT)
    tools = declared(work, limit=NAME_LIMIT)
    messages = _messages(work, prefill=prefill, sums_up=bool(options.get("compaction")))
    mark = None if cache is None else {"type": "ephemeral", "ttl": cache}
    made: dict[str, Any] = {"model": model, "max_tokens": max_tokens}
    if mark is not None and cache_marks == "auto":
        made["cache_control"] = mark
    if context.system.strip():
        system = {"type": "text", "text": context.system}
        made["system"] = [system if mark is None else {**system, "cache_control": mark}]
    choice = chosen(work, tool_choice, tools, limit=NAME_LIMIT)
    listed = _tools(tools)
    if not listed:
        listed = _undeclared(work, messages)
        choice = "none" if listed else None
    if mark is not None and cache_marks == "explicit":
        _mark(mark, listed, messages)
    if listed:
        made["tools"] = listed
    if choice is not None:
        kinds = {"auto": "auto", "none": "none", "required": "any"}
        made["tool_choice"] = {"type": kinds[choice]} if choice in kinds else {"type": "tool", "name": choice}
    made["messages"] = messages
    return Request({**made, **options}, work.report, context)


def _mark(mark: dict[str, Any], tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
    """Mark the last tool, and the end of the last two messages of the user's: what was sent, and what will be.

    With the system prompt those are four, which is all that Anthropic takes; tools that come with marks keep them.
    """
    own = sum("cache_control" in tool for tool in tools)
    for place in [place for place, tool in enumerate(tools) if not own and not tool.get("defer_loading")][-1:]:
        tools[place] = {**tools[place], "cache_control": mark}
    spoken = [message for message in reversed(messages) if message["role"] == "user"]
    for message in spoken[: max(0, min(2, 3 - own))]:
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


def _undeclared(work: RequestBuilder, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tools of a conversation that has none any more: Anthropic takes no calls of tools it was not told of."""
    blocks = [block for message in messages for block in message["content"]]
    names = dict.fromkeys(block["name"] for block in blocks if block["type"] == "tool_use")
    if names:
        work.note("added", "tool", "the conversation has calls of tools that are no longer there")
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _messages(work: RequestBuilder, *, prefill: bool, sums_up: bool) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    def say(role: str, content: list[dict[str, Any]]) -> None:
        if not content:
            return
        if not messages and role == "assistant" and content[0]["type"] != "compaction":
            messages.append({"role": "user", "content": [_text(NOTHING_BEFORE)]})
            work.note("added", "message", "the user has to speak first")
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += content
        else:
            messages.append({"role": role, "content": content})

    turns = work.turns(compacts=True)
    last = turns[-1] if turns else None
    paused = last is not None and _is_paused(last.message)
    held: list[dict[str, Any]] = []
    """Pictures of results that failed: they stand behind all the results of their turn."""
    for turn in turns:
        if turn.role == "tool":
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    say("user", [_result(work, block, turn, held)])
            continue
        if held:
            say("user", list(held))
            held.clear()
        if turn.role == "assistant":
            say("assistant", _assistant(work, turn, paused=paused and turn is last))
        else:
            say("user", _user(work, turn))
    if held:
        say("user", held)
    _settle_reasoning(work, messages)
    if not messages:
        messages.append({"role": "user", "content": [_text(NOTHING_BEFORE)]})
        work.note("added", "message", "nothing else is left to send")
    if messages[-1]["role"] == "assistant" and not paused and not sums_up:
        if prefill and _is_open_text(messages[-1]):
            end = messages[-1]["content"][-1]
            end["text"] = end["text"].rstrip()
        else:
            messages.append({"role": "user", "content": [_text(GO_ON)]})
            work.note("added", "message", "the user has to speak last")
    return messages


def _is_paused(message: Message) -> bool:
    return (own(message, PROVIDER, None) or {}).get("stop_reason") in PAUSES


def _is_open_text(message: dict[str, Any]) -> bool:
    return message["content"][-1]["type"] == "text" and bool(message["content"][-1]["text"].rstrip())


def _settle_reasoning(work: RequestBuilder, messages: list[dict[str, Any]]) -> None:
    """An assistant's message may not end in reasoning."""
    for message in messages:
        content = message["content"]
        while message["role"] == "assistant" and content and content[-1]["type"] in REASONING:
            content.pop()
            work.note("left out", "thinking", "nothing was said after it")
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


def _user(work: RequestBuilder, turn: RequestMessage) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in turn.blocks:
        if isinstance(block, Text):
            content.append(_text(block.text))
        elif isinstance(block, (Image, File)):
            content.append(_media(work, block, turn.message))
    if turn.role == "system" and content:
        work.note("changed", "message", "a system message in between is sent as the user's", turn.message)
        return [_text("<system>"), *content, _text("</system>")]
    return content


def _assistant(work: RequestBuilder, turn: RequestMessage, *, paused: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    answered = {block.call for block in turn.blocks if isinstance(block, ToolResult)}
    called = {block.id for block in turn.blocks if isinstance(block, ToolCall)}
    for block in turn.blocks:
        mine = own(block, PROVIDER, work.account) or {}
        extra = {key: value for key, value in mine.items() if key in _EXTRAS and _is_taken(key, value)}
        if isinstance(block, Text):
            if block.text.strip():
                content.append({**_text(block.text), **extra})
        elif isinstance(block, Thinking):
            content += _thinking(work, block, turn)
        elif isinstance(block, ToolCall):
            form = {"type": "tool_use", "name": work.tool_name(block.name, limit=NAME_LIMIT)}
            if block.by is None:
                form["id"] = work.call_id(block, turn.message)
            elif block.id in answered or paused:
                form = {"type": "server_tool_use", "name": block.name, "id": block.id}
            else:
                work.note("left out", "tool call", "the provider has not answered it", turn.message)
                continue
            content.append({**form, "input": work.object_of(block, turn.message), **extra})
        elif isinstance(block, ToolResult):
            if block.call in called and isinstance(mine.get("block"), dict):
                content.append(mine["block"])
            else:
                work.note("left out", "tool result", "its call is not there", turn.message)
        else:
            work.note("left out", kind_of(block), "the assistant cannot send it", turn.message)
    return content


def _is_taken(key: str, value: Any) -> bool:
    """Whether Anthropic takes a field back. Of callers there have been others than it takes."""
    kind = str(fields(value).get("type"))
    return key != "caller" or kind == "direct" or kind.startswith("code_execution_")


def _thinking(work: RequestBuilder, block: Thinking, turn: RequestMessage) -> list[dict[str, Any]]:
    data = fields(block.data)
    if compaction := compacted(block):
        return [{name: block.text if name == "content" else value for name, value in compaction[0].items()}]
    if work.context.is_stale(turn.message):
        work.note("left out", "thinking", "what came before it has been compacted or edited since", turn.message)
    elif isinstance(data.get("redacted"), str):
        return [{"type": "redacted_thinking", "data": data["redacted"]}]
    elif isinstance(data.get("signature"), str):
        return [{"type": "thinking", "thinking": block.text, "signature": data["signature"]}]
    else:
        work.note("left out", "thinking", "it has no signature", turn.message)
    return []


def _result(
    work: RequestBuilder, result: ToolResult, turn: RequestMessage, held: list[dict[str, Any]]
) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "tool_result", "tool_use_id": work.result_id(result)}
    content: list[dict[str, Any]] = []
    for part in work.result_parts(result, turn.message):
        made = _text(part.text) if isinstance(part, Text) else _media(work, part, turn.message)
        if result.is_error and made["type"] != "text":
            work.note("changed", kind_of(part), "a failed result holds text only: it stands behind it", turn.message)
            held.append(made)
        else:
            content.append(made)
    if content:
        form["content"] = content
    elif result.is_error:
        form["content"] = [_text(NO_OUTPUT)]
    if result.is_error:
        form["is_error"] = True
    return form


def _media(work: RequestBuilder, block: Image | File, message: Message) -> dict[str, Any]:
    media = load(block, work.context, PROVIDER)
    why = media if isinstance(media, str) else ""
    source: dict[str, Any] | None = None
    kind = "image" if isinstance(block, Image) else "document"
    if not isinstance(media, str):
        if media.file is not None:
            source = {"type": "file", "file_id": media.file}
        elif media.url is not None:
            source = {"type": "url", "url": media.url}
        elif media.data and media.media_type in PICTURES:
            kind = "image"
            source = {"type": "base64", "media_type": media.media_type, "data": media.base64}
        elif media.data and media.media_type == PDF:
            kind = "document"
            source = {"type": "base64", "media_type": PDF, "data": media.base64}
        elif (media.text or "").strip():
            kind = "document"
            source = {"type": "text", "media_type": "text/plain", "data": media.text}
        else:
            why = f"{media.media_type or 'its kind'} is not accepted"
    if source is None:
        work.note("left out", kind_of(block), why, message)
        return _text(f"[{kind_of(block)} left out: {why}]")
    titled = {"title": block.name} if kind == "document" and block.name else {}
    return {"type": kind, "source": source, **titled}
