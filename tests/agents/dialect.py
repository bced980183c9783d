"""The four ways agents talk to a model: how an answer is streamed, and what a request says.

Written from the providers' own documentation and from what the agents were seen to send. Nothing here is Turnlog's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.agents.script import Block, Call, Conversation, Image, Result, Text, Thinking, Turn

Raw = dict[str, Any]
Events = Iterator[tuple[str, Raw]]


def _json(value: Any) -> str:
    # Gemini CLI drops an answer with a bare U+2028 in its stream, and asks again.
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parts(content: Any) -> list[Raw]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [part for part in content or [] if isinstance(part, dict)]


def _data_url(url: str) -> Image:
    head, _, data = url.partition(",")
    return Image(head.removeprefix("data:").removesuffix(";base64"), data)


# --- Anthropic Messages ---------------------------------------------------------------------------------------------


def _anthropic_stream(turn: Turn, id: str, model: str) -> Events:
    spent = turn.usage
    usage = {
        "input_tokens": spent.input,
        "cache_creation_input_tokens": spent.cache_write,
        "cache_read_input_tokens": spent.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": spent.cache_write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
    }
    message = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": model, "content": []}
    yield "message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, block in enumerate(turn.blocks):
        at = {"index": index}
        match block:
            case Text(text=text):
                yield "content_block_start", {**at, "content_block": {"type": "text", "text": ""}}
                yield "content_block_delta", {**at, "delta": {"type": "text_delta", "text": text}}
            case Thinking(text=text, opaque=opaque):
                yield "content_block_start", {**at, "content_block": {"type": "thinking", "thinking": ""}}
                yield "content_block_delta", {**at, "delta": {"type": "thinking_delta", "thinking": text}}
                yield "content_block_delta", {**at, "delta": {"type": "signature_delta", "signature": opaque}}
            case Call(id=call, name=name, input=arguments):
                start = {"type": "tool_use", "id": call, "name": name, "input": {}}
                yield "content_block_start", {**at, "content_block": start}
                delta = {"type": "input_json_delta", "partial_json": _json(arguments)}
                yield "content_block_delta", {**at, "delta": delta}
            case _:
                raise TypeError(block)
        yield "content_block_stop", at
    stop = "tool_use" if turn.calls else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield "message_delta", {"delta": delta, "usage": {**usage, "output_tokens": spent.output}}
    yield "message_stop", {}


def _anthropic_answer(turn: Turn, id: str, model: str) -> Raw:
    whole: Raw = {}
    content: list[Raw] = []
    for event, raw in _anthropic_stream(turn, id, model):
        if event == "message_start":
            whole = raw["message"]
        elif event == "content_block_start":
            content.append(raw["content_block"])
        elif event == "content_block_delta":
            delta = raw["delta"]
            if "partial_json" in delta:
                content[-1]["input"] = json.loads(delta["partial_json"])
            else:
                content[-1].update({key: value for key, value in delta.items() if key != "type"})
        elif event == "message_delta":
            whole |= {**raw["delta"], "usage": raw["usage"]}
    return {**whole, "content": content}


def _anthropic_read(body: Raw) -> Conversation:
    conversation: Conversation = []
    for message in body.get("messages") or []:
        said: list[Block] = []
        results: list[Block] = []
        for part in _parts(message["content"]):
            kind = part.get("type")
            if kind == "text":
                said.append(Text(part["text"]))
            elif kind == "thinking":
                said.append(Thinking(part["thinking"], part.get("signature", "")))
            elif kind == "image":
                said.append(Image(part["source"]["media_type"], part["source"]["data"]))
            elif kind == "tool_use":
                said.append(Call(part["id"], part["name"], part["input"]))
            elif kind == "tool_result":
                inner = _parts(part.get("content"))
                text = "\n".join(one["text"] for one in inner if one.get("type") == "text")
                images = tuple(
                    Image(one["source"]["media_type"], one["source"]["data"])
                    for one in inner
                    if one.get("type") == "image"
                )
                results.append(Result(part["tool_use_id"], text, bool(part.get("is_error")), images))
            else:
                said.append(Text(f"[{kind}] {_json(part)}"))
        if results:
            conversation.append(("tool", results))
        if said:
            conversation.append((message["role"], said))
    return conversation


# --- OpenAI Responses -----------------------------------------------------------------------------------------------


def _responses_item(block: Block, id: str) -> Raw:
    match block:
        case Text(text=text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content}
        case Thinking(text=text, opaque=opaque):
            summary = [{"type": "summary_text", "text": text}]
            return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": opaque}
        case Call(id=call, name=name, input=str(text)):
            return {"type": "custom_tool_call", "id": id, "call_id": call, "name": name, "input": text}
        case Call(id=call, name=name, input=arguments):
            item = {"type": "function_call", "id": id, "call_id": call, "name": name, "arguments": _json(arguments)}
            space, slash, name = name.rpartition("/")
            return item | ({"namespace": space, "name": name} if slash else {})
        case _:
            raise TypeError(block)


def _responses_answer(turn: Turn, id: str, model: str) -> Raw:
    spent = turn.usage
    whole_input = spent.input + spent.cache_read + spent.cache_write
    details: Raw = {"cached_tokens": spent.cache_read, "cache_write_tokens": spent.cache_write}
    usage = {
        "input_tokens": whole_input,
        "input_tokens_details": details,
        "output_tokens": spent.output,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning},
        "total_tokens": whole_input + spent.output,
    }
    items = [_responses_item(block, f"item_{id}_{n}") for n, block in enumerate(turn.blocks)]
    head = {"id": f"resp_{id}", "object": "response", "created_at": 1, "status": "completed", "model": model}
    return {**head, "output": items, "usage": usage}


def _responses_stream(turn: Turn, id: str, model: str) -> Events:
    whole = _responses_answer(turn, id, model)
    yield "response.created", {"response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(whole["output"]):
        yield "response.output_item.added", {"output_index": index, "item": {**item, "content": [], "summary": []}}
        if item["type"] == "message":
            at = {"output_index": index, "item_id": item["id"], "content_index": 0}
            yield "response.output_text.delta", {**at, "delta": item["content"][0]["text"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": whole}


def _responses_output(output: Any) -> tuple[str, tuple[Image, ...]]:
    if isinstance(output, str):
        return output, ()
    parts = _parts(output)
    text = "\n".join(part["text"] for part in parts if "text" in part)
    return text, tuple(_data_url(part["image_url"]) for part in parts if "image_url" in part)


def _responses_read(body: Raw) -> Conversation:
    conversation: Conversation = []
    items = body.get("input") or []
    for item in [{"type": "message", "role": "user", "content": items}] if isinstance(items, str) else items:
        kind = item.get("type", "message")
        role = "assistant"
        if kind == "message":
            role = {"developer": "system"}.get(item["role"], item["role"])
            blocks: list[Block] = [
                _data_url(part["image_url"]) if "image_url" in part else Text(part.get("text", ""))
                for part in _parts(item["content"])
            ]
        elif kind == "reasoning":
            text = "\n".join(part["text"] for part in item.get("summary") or [])
            blocks = [Thinking(text, item.get("encrypted_content") or "")]
        elif kind == "function_call":
            name = "/".join(part for part in (item.get("namespace"), item["name"]) if part)
            blocks = [Call(item["call_id"], name, _loads(item["arguments"]))]
        elif kind == "custom_tool_call":
            blocks = [Call(item["call_id"], item["name"], item["input"])]
        elif kind in ("function_call_output", "custom_tool_call_output"):
            role = "tool"
            text, images = _responses_output(item["output"])
            blocks = [Result(item["call_id"], text, None, images)]
        else:
            blocks = [Text(f"[{kind}] {_json(item)}")]
        if conversation and conversation[-1][0] == role in ("assistant", "tool"):
            conversation[-1][1].extend(blocks)
        else:
            conversation.append((role, blocks))
    return conversation


# --- OpenAI Chat Completions ----------------------------------------------------------------------------------------


def _chat_usage(turn: Turn) -> Raw:
    spent = turn.usage
    prompt = spent.input + spent.cache_read + spent.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": spent.output,
        "total_tokens": prompt + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cache_read, "cache_write_tokens": spent.cache_write},
        "completion_tokens_details": {"reasoning_tokens": spent.reasoning},
    }


def _chat_answer(turn: Turn, id: str, model: str) -> Raw:
    message: Raw = {"role": "assistant", "content": turn.text or None}
    thoughts = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
    if thoughts:
        message["reasoning_content"] = thoughts
    if turn.calls:
        message["tool_calls"] = [
            {"index": n, "id": call.id, "type": "function", "function": function}
            for n, call in enumerate(turn.calls)
            for function in [{"name": call.name, "arguments": _json(call.input)}]
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if turn.calls else "stop"}
    head = {"id": f"chatcmpl_{id}", "object": "chat.completion", "created": 1, "model": model}
    return {**head, "choices": [choice], "usage": _chat_usage(turn)}


def _chat_stream(turn: Turn, id: str, model: str) -> Events:
    whole = _chat_answer(turn, id, model)
    [choice] = whole["choices"]
    message = choice["message"]
    head = {**whole, "object": "chat.completion.chunk", "usage": None}

    def chunk(delta: Raw, finish: str | None = None) -> tuple[str, Raw]:
        return "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for key in ("reasoning_content", "content", "tool_calls"):
        if message.get(key):
            yield chunk({key: message[key]})
    yield chunk({}, choice["finish_reason"])
    yield "", {**head, "choices": [], "usage": whole["usage"]}


def _chat_read(body: Raw) -> Conversation:
    conversation: Conversation = []
    for message in body.get("messages") or []:
        role = {"developer": "system"}.get(message["role"], message["role"])
        blocks: list[Block] = []
        thoughts = message.get("reasoning_content") or message.get("reasoning")
        if thoughts:
            blocks.append(Thinking(thoughts))
        parts = _parts(message.get("content"))
        said: list[Block] = [
            _data_url(part["image_url"]["url"]) if "image_url" in part else Text(part.get("text", "")) for part in parts
        ]
        if role == "tool":
            text = "\n".join(block.text for block in said if isinstance(block, Text))
            blocks = [Result(message["tool_call_id"], text)]
        else:
            blocks += said
        for call in message.get("tool_calls") or []:
            function = call["function"]
            blocks.append(Call(call["id"], function["name"], _loads(function["arguments"])))
        if conversation and conversation[-1][0] == role == "tool":
            conversation[-1][1].extend(blocks)
        else:
            conversation.append((role, blocks))
    return conversation


# --- Gemini ---------------------------------------------------------------------------------------------------------


def _gemini_answer(turn: Turn, id: str, model: str) -> Raw:
    parts: list[Raw] = []
    for block in turn.blocks:
        match block:
            case Text(text=text):
                parts.append({"text": text})
            case Thinking(text=text, opaque=opaque):
                parts.append({"text": text, "thought": True} | ({"thoughtSignature": opaque} if opaque else {}))
            case Call(id=call, name=name, input=arguments):
                parts.append({"functionCall": {"id": call, "name": name, "args": arguments}})
            case _:
                raise TypeError(block)
    spent = turn.usage
    usage = {
        "promptTokenCount": spent.input + spent.cache_read,
        "cachedContentTokenCount": spent.cache_read,
        "candidatesTokenCount": spent.output - spent.reasoning,
        "thoughtsTokenCount": spent.reasoning,
        "totalTokenCount": spent.input + spent.cache_read + spent.output,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": id}


def _gemini_stream(turn: Turn, id: str, model: str) -> Events:
    yield "", _gemini_answer(turn, id, model)


def _gemini_read(body: Raw) -> Conversation:
    conversation: Conversation = []
    for content in body.get("contents") or []:
        said: list[Block] = []
        results: list[Block] = []
        for part in content.get("parts") or []:
            if "functionCall" in part:
                call = part["functionCall"]
                said.append(Call(call.get("id", ""), call["name"], call.get("args") or {}))
            elif "functionResponse" in part:
                answer = part["functionResponse"]
                response = answer.get("response") or {}
                error = "error" in response
                text = response.get("error" if error else "output")
                results.append(Result(answer.get("id", ""), text if isinstance(text, str) else _json(response), error))
            elif "inlineData" in part:
                said.append(Image(part["inlineData"]["mimeType"], part["inlineData"]["data"]))
            elif part.get("thought"):
                said.append(Thinking(part.get("text", ""), part.get("thoughtSignature", "")))
            else:
                said.append(Text(part.get("text", "")))
        if results:
            conversation.append(("tool", results))
        if said:
            conversation.append(({"model": "assistant"}.get(content["role"], content["role"]), said))
    return conversation


# --------------------------------------------------------------------------------------------------------------------


class Dialect(NamedTuple):
    name: str
    stream: Callable[[Turn, str, str], Events]
    answer: Callable[[Turn, str, str], Raw]
    read: Callable[[Raw], Conversation]
    end: bytes = b""


ANTHROPIC = Dialect("anthropic", _anthropic_stream, _anthropic_answer, _anthropic_read)
RESPONSES = Dialect("responses", _responses_stream, _responses_answer, _responses_read)
CHAT = Dialect("chat", _chat_stream, _chat_answer, _chat_read, b"data: [DONE]\n\n")
GEMINI = Dialect("gemini", _gemini_stream, _gemini_answer, _gemini_read)


def of_path(path: str) -> Dialect | None:
    """The dialect of a request, by where it was sent."""
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return ANTHROPIC
    if path.endswith("/responses"):
        return RESPONSES
    if path.endswith("/chat/completions"):
        return CHAT
    if path.endswith(("GenerateContent", ":generateContent")):
        return GEMINI
    return None


def encode(dialect: Dialect, event: str, raw: Raw) -> bytes:
    """One event of a stream."""
    if event:
        return f"event: {event}\ndata: {_json({'type': event, **raw})}\n\n".encode()
    return f"data: {_json(raw)}\n\n".encode()
