"""OpenAI's Chat Completions API, and what many other servers take: a conversation is a list of messages."""

from __future__ import annotations

from typing import Any

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Message, Stop
from turnlog.wire import NOTHING_BEFORE, RequestBuilder, RequestMessage, fields, items, kind_of, own, tagged
from turnlog.wire._media import PDF, PICTURES, load
from turnlog.wire._name import log_name
from turnlog.wire._tool import Tools
from turnlog.wire.openai.part import NAME_LIMIT, PROVIDER, REFUSAL, arguments_of, input_of
from turnlog.wire.openai.responses import usage_of

_STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "tool_calls": "tool_use", "function_call": "tool_use"}
_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


def request(work: RequestBuilder, tools: Tools, choice: str | None, max_tokens: int | None) -> dict[str, Any]:
    """Everything of a request but its model."""
    made: dict[str, Any] = {}
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
            work.note("left out", "tool", f"{native.get('type')} is only in the Responses API")
    if listed:
        made["tools"] = listed
    if choice is not None and listed:
        named = choice not in ("auto", "none", "required")
        made["tool_choice"] = {"type": "function", "function": {"name": choice}} if named else choice
    if max_tokens is not None:
        made["max_completion_tokens"] = max_tokens
    made["messages"] = _messages(work)
    return made


def _messages(work: RequestBuilder) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if work.context.system.strip():
        made.append({"role": "system", "content": work.context.system})
    held: list[dict[str, Any]] = []
    """Pictures and files of results: a tool's message holds text only, so they come behind as the user's."""
    for turn in work.turns():
        if turn.role == "tool":
            for block in turn.blocks:
                if isinstance(block, ToolResult):
                    made.append(_result(work, block, turn.message, held))
            continue
        if held:
            made.append({"role": "user", "content": list(held)})
            held.clear()
        if turn.role == "assistant":
            made += _assistant(work, turn)
            continue
        content: list[dict[str, Any]] = []
        for block in turn.blocks:
            if isinstance(block, Text) or (isinstance(block, (Image, File)) and turn.role == "user"):
                content.append(_content(work, block, turn.message))
        if content:
            made.append({"role": turn.role, "content": _shortest(content)})
    if held:
        made.append({"role": "user", "content": held})
    if all(message["role"] == "system" for message in made):
        work.note("added", "message", "nobody but the system says anything")
        made.append({"role": "user", "content": NOTHING_BEFORE})
    return made


def _shortest(content: list[dict[str, Any]]) -> Any:
    return content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _assistant(work: RequestBuilder, turn: RequestMessage) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in turn.blocks:
        mine = own(block, PROVIDER, work.account) or {}
        if isinstance(block, Text):
            if block.text.strip():
                refused = bool(mine.get(REFUSAL))
                content.append({"type": REFUSAL, REFUSAL: block.text} if refused else _text(block.text))
        elif isinstance(block, ToolCall) and block.by is None:
            id, name = work.call_id(block, turn.message), work.tool_name(block.name, limit=NAME_LIMIT)
            if mine.get("type") == "custom" and isinstance(block.input, str):
                calls.append({"id": id, "type": "custom", "custom": {"name": name, "input": block.input}})
            else:
                form = {"name": name, "arguments": arguments_of(block)}
                calls.append({"id": id, "type": "function", "function": form})
        else:
            work.note("left out", kind_of(block), "Chat Completions has no place for it", turn.message)
    made: dict[str, Any] = {"role": "assistant"}
    if content:
        made["content"] = _shortest(content)
    if calls:
        made["tool_calls"] = calls
    return [made] if len(made) > 1 else []


def _result(work: RequestBuilder, result: ToolResult, message: Message, held: list[dict[str, Any]]) -> dict[str, Any]:
    id = work.result_id(result)
    texts = ["[error]"] if result.is_error else []
    for part in work.result_parts(result, message):
        made = _content(work, part, message)
        if made["type"] == "text":
            texts.append(made["text"])
        else:
            name = kind_of(part)
            texts.append(f"[the {name} is in the next message]")
            held.append(made)
            work.note("changed", name, "a result holds text only: it comes behind the results", message)
    return {"role": "tool", "tool_call_id": id, "content": "\n".join(texts)}


def _content(work: RequestBuilder, block: Text | Image | File, message: Message) -> dict[str, Any]:
    if isinstance(block, Text):
        return _text(block.text)
    media = load(block, work.context, PROVIDER)
    name = kind_of(block)
    why = media if isinstance(media, str) else f"{media.media_type or 'its kind'} is not accepted"
    if not isinstance(media, str):
        kind = media.media_type
        is_picture = kind in PICTURES or (isinstance(block, Image) and not kind)
        if is_picture and (media.url or media.data):
            return {"type": "image_url", "image_url": {"url": media.url or media.data_url}}
        if isinstance(block, File) and media.file is not None:
            return {"type": "file", "file": {"file_id": media.file}}
        if media.data and kind == PDF:
            form = {"filename": media.name or "file.pdf", "file_data": media.data_url}
            return {"type": "file", "file": form}
        if media.data and kind in _SOUNDS:
            return {"type": "input_audio", "input_audio": {"data": media.base64, "format": _SOUNDS[kind]}}
        if (media.text or "").strip():
            return _text(f"[{media.name or 'file'}]\n{media.text}")
    work.note("left out", name, why, message)
    return _text(f"[{name} left out: {why}]")


# ── responses ─────────────────────────────────────────────────────────────────────────────────────


def draft(data: dict[str, Any], known: dict[str, str], account: str | None) -> Message:
    """A response as one message: its first choice."""
    choice = (items(data.get("choices")) or [{}])[0]
    said = fields(choice.get("message"))
    blocks = said_blocks(said, account, known, spare=str(data.get("id") or "call"))
    reason, error = choice.get("finish_reason"), data.get("error")
    stop: Stop = "error" if error else _STOPS.get(str(reason), "error") if reason else "aborted"
    if stop == "end" and said.get("tool_calls"):
        stop = "tool_use"
    if reason == "content_filter" or (said.get(REFUSAL) and stop == "end"):
        stop, error = "error", {"type": REFUSAL, "reason": reason}
    return Message(
        role="assistant",
        blocks=blocks,
        model=data.get("model"),
        request=data.get("id"),
        usage=usage_of(data["usage"]) if isinstance(data.get("usage"), dict) else None,
        stop=stop,
        error=error,
        meta=tagged(PROVIDER, {"partial": data.get("partial")}, None),
    )


def said_blocks(
    said: dict[str, Any], account: str | None, known: dict[str, str] | None = None, *, spare: str = "call"
) -> list[AnyBlock]:
    """What a message of the assistant is made of."""
    blocks: list[AnyBlock] = []
    thought = said.get("reasoning_content") or said.get("reasoning")
    if isinstance(thought, str):
        blocks.append(Thinking(text=thought, provider=PROVIDER))
    blocks += _texts(said, account)
    for index, call in enumerate(items(said.get("tool_calls"))):
        blocks.append(_call(call, f"{spare}-{index}", known or {}, account))
    return blocks


def _texts(said: dict[str, Any], account: str | None) -> list[AnyBlock]:
    """What the model said: text, or parts in a message as it is sent; and what it refused to say."""
    content = said.get("content")
    parts = [_text(content)] if isinstance(content, str) else items(content)
    if isinstance(said.get(REFUSAL), str):
        parts = [*parts, {"type": REFUSAL, REFUSAL: said[REFUSAL]}]
    blocks: list[AnyBlock] = []
    for part in parts:
        is_refusal = part.get("type") == REFUSAL
        mine = {REFUSAL: True} if is_refusal else {"annotations": said.get("annotations")}
        text = str(part.get(REFUSAL if is_refusal else "text") or "")
        if text:
            blocks.append(Text(text=text, meta=tagged(PROVIDER, mine, account)))
    return blocks


def _call(call: dict[str, Any], spare: str, known: dict[str, str], account: str | None) -> ToolCall:
    is_custom = isinstance(call.get("custom"), dict)
    form = fields(call.get("custom" if is_custom else "function"))
    return ToolCall(
        id=log_name(str(call.get("id") or spare), known),
        name=log_name(str(form.get("name") or ""), known),
        input=form.get("input") if is_custom else input_of(form.get("arguments")),
        meta=tagged(PROVIDER, {"type": "custom"}, account) if is_custom else None,
    )
