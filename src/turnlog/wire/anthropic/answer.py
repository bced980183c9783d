"""What Anthropic answers, whole or in pieces, as one message."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from turnlog.interop.value import fields, items, token_count
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import Context
from turnlog.log.context.nativecompaction import note_answered_head
from turnlog.log.entry import Message, Stop
from turnlog.log.usage import Usage
from turnlog.wire import Ending, Request, plain, tagged
from turnlog.wire._name import log_name
from turnlog.wire._original import original_names
from turnlog.wire._timing import TimedStream, Timing
from turnlog.wire._tool import input_of, storable, unwrapped
from turnlog.wire.anthropic.ask import ID_LIMIT, NAME_LIMIT, PAUSES, PROVIDER, REASONING

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "pause_turn": "tool_use",
    "compaction": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "error",
}


def draft(response: Any, *, context: Context | None = None, account: str | None = None) -> Message:
    """A response as one message.

    The `context` it answers undoes ids and names that had to become digests, and tells how much a compaction in it
    stands for; without it, that is everything that was said before the message is appended.
    """
    data = plain(response)
    originals = original_names(context, limits=(ID_LIMIT, NAME_LIMIT))
    reason = data.get("stop_reason")
    end = ending_of(reason, data.get("error"), data.get("stop_details"))
    content, partial = items(data.get("content")), items(data.get("partial"))
    if end.stop == "length" and content and content[-1].get("type") == "tool_use":
        partial = [content.pop(), *partial]  # after a whole call, the model would have gone on or stopped by itself
    meta = {
        "stop_reason": reason if reason in (*PAUSES, "stop_sequence", "refusal") else None,
        "partial": partial,
    }
    message = Message(
        role="assistant",
        blocks=[answered_block(block, originals, account) for block in content],
        model=data.get("model"),
        request=data.get("id"),
        usage=usage_of(data["usage"]) if isinstance(data.get("usage"), dict) else None,
        stop=end.stop,
        error=end.error,
        meta=tagged(PROVIDER, meta, None),
    )
    return note_answered_head(message, None if context is None else context.head_id)


def ending_of(reason: Any, error: Any, details: Any) -> Ending:
    """How a response ended, with its error if it failed or was refused."""
    if reason == "refusal":
        error = {"type": "refusal", **{k: v for k, v in fields(details).items() if k != "type"}}
    if error:
        return Ending("error", error)
    return Ending(_STOPS.get(str(reason), "end") if reason else "aborted", error)


def answered_block(raw: dict[str, Any], originals: dict[str, str], account: str | None) -> AnyBlock:
    """A block of an answer."""
    kind = raw.get("type")
    if kind == "text" and isinstance(raw.get("text") or "", str):
        rest = {key: value for key, value in raw.items() if key not in ("type", "text")}
        return Text(text=raw.get("text") or "", meta=tagged(PROVIDER, rest, account))
    if kind in REASONING and isinstance(raw.get("thinking") or "", str):
        own_data = {"redacted": raw.get("data")} if kind == "redacted_thinking" else {"signature": raw.get("signature")}
        data = (tagged(PROVIDER, own_data, account) or {}).get(PROVIDER)
        return Thinking(text=raw.get("thinking") or "", provider=PROVIDER, data=data)
    if kind == "compaction" and raw.get("content") and isinstance(raw["content"], str):
        own_data = {"compaction": [{**raw, "content": None}]}
        data = (tagged(PROVIDER, own_data, account) or {}).get(PROVIDER)
        return Thinking(text=raw["content"], provider=PROVIDER, data=data)
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        by_us = kind == "tool_use"
        rest = {key: value for key, value in raw.items() if key not in ("id", "name", "input", "type")}
        id, name = str(raw.get("id") or ""), str(raw.get("name") or "")
        return ToolCall(
            id=log_name(id, originals) if by_us else id,
            name=log_name(name, originals) if by_us else name,
            input=storable(unwrapped(raw.get("input"))),
            by=None if by_us else "provider",
            meta=tagged(PROVIDER, rest if by_us else {"type": kind, **rest}, account),
        )
    if isinstance(kind, str) and kind.endswith("_tool_result"):
        text, is_error = _readable(raw.get("content"))
        call = str(raw.get("tool_use_id") or "")
        name = kind.removesuffix("_tool_result")
        meta = tagged(PROVIDER, {"block": raw}, account)
        return ToolResult(call=call, name=name, content=text, is_error=is_error, meta=meta)
    return UnknownBlock(kind=str(kind), json=msgspec.json.encode(raw).decode())


def _readable(content: Any) -> tuple[str, bool]:
    """What people can read of the result of a tool that Anthropic ran, and whether it failed."""
    lines: list[str] = []
    for part in items(content) or [fields(content)]:
        texts = [part.get(key) for key in ("title", "url", "text", "stdout", "stderr", "error_code")]
        lines += [str(item) for item in texts if item]
    return "\n".join(lines), str(fields(content).get("type", "")).endswith("_error")


def usage_of(raw: dict[str, Any]) -> Usage:
    """The usage of a response."""
    get, by_duration = raw.get, raw.get("cache_creation")
    written, hour = token_count(get("cache_creation_input_tokens")), 0
    if by_duration:
        hour = token_count(by_duration, "ephemeral_1h_input_tokens")
        written = max(written, hour + token_count(by_duration, "ephemeral_5m_input_tokens"))
    own = Usage(
        input_tokens=token_count(get("input_tokens")),
        cache_read_tokens=token_count(get("cache_read_input_tokens")),
        cache_write_tokens=written - hour,
        cache_write_1h_tokens=hour,
        output_tokens=token_count(get("output_tokens")),
        reasoning_tokens=token_count(get("output_tokens_details"), "thinking_tokens"),
    )
    apart = [usage_of(one) for one in items(get("iterations")) if one.get("type") == "compaction"]
    return sum(apart, own)


class AnthropicStream(TimedStream):
    """A streamed response: feed it the events, then take the message."""

    def __init__(
        self,
        *,
        request: Request | None = None,
        context: Context | None = None,
        account: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(Timing(PROVIDER, request, clock))
        self._context = context if context is not None or request is None else request.context
        self._account = account
        self._response: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        """What is still being written: the JSON of calls, and compactions, of which half is none."""

    def feed(self, event: Any) -> None:
        """Take the next event."""
        data = plain(event)
        kind, index = data.get("type"), data.get("index", -1)
        self._timing.note_event(is_token=kind == "content_block_delta")
        if kind == "message_start":
            self._response = {**fields(data.get("message")), "stop_reason": None}
        elif kind == "content_block_start":
            block = dict(fields(data.get("content_block")))
            self._blocks[index] = block
            if "input" in block or block.get("type") == "compaction":
                self._inputs[index] = ""
        elif kind == "content_block_delta" and index in self._blocks:
            self._grow(index, fields(data.get("delta")))
        elif kind == "content_block_stop" and index in self._inputs:
            text = self._inputs.pop(index)
            if text:
                self._blocks[index]["input"] = input_of(text)
        elif kind == "message_delta":
            self._response.update(fields(data.get("delta")))
            new = {key: value for key, value in fields(data.get("usage")).items() if value is not None}
            self._response["usage"] = {**fields(self._response.get("usage")), **new}
        elif kind == "error":
            self._response["error"] = fields(data.get("error"))

    def _grow(self, index: int, delta: dict[str, Any]) -> None:
        block, kind = self._blocks[index], delta.get("type")
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + (delta.get("partial_json") or "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        elif kind == "compaction_delta":
            block.update((key, value) for key, value in delta.items() if key != "type")
        else:
            for key in ("text", "thinking", "signature"):
                if isinstance(delta.get(key), str):
                    block[key] = (block.get(key) or "") + delta[key]

    def finish(self) -> Message:
        """What arrived."""
        whole = [self._blocks[index] for index in sorted(self._blocks) if index not in self._inputs]
        partial = [{**self._blocks[index], "input": text} for index, text in self._inputs.items()]
        content = [block for block in whole if block.get("type") != "text" or block.get("text")]
        response = {**self._response, "content": content, "partial": partial}
        return self._timing.with_times(draft(response, context=self._context, account=self._account))
