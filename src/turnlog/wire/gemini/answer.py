"""What Gemini answers, whole or in pieces, as one message."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from turnlog.interop.base64 import from_base64
from turnlog.interop.value import fields, items, token_count
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import Context
from turnlog.log.digest import sha256
from turnlog.log.entry import Message, Stop
from turnlog.log.usage import Usage
from turnlog.wire import Ending, Request, plain, tagged
from turnlog.wire._name import log_name
from turnlog.wire._original import original_names
from turnlog.wire._timing import TimedStream, Timing
from turnlog.wire._tool import storable, unwrapped
from turnlog.wire.gemini.ask import ID_LIMIT, NAME_LIMIT, PROVIDER

_STOPS: dict[str, Stop] = {"STOP": "end", "MAX_TOKENS": "length", "CONTINUATION": "length"}
_REFUSALS = frozenset((
    "BLOCKLIST", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_SAFETY", "PROHIBITED_CONTENT", "RECITATION",
    "SAFETY", "SPII",
))  # fmt: skip

_RESULT_KEYS = ("output", "result", "error")


def _get(data: Any, name: str) -> Any:
    """A field, as the SDK spells it (`finish_reason`) or as REST does (`finishReason`)."""
    members = fields(data)
    return members[name] if name in members else members.get(_camel(name))


@cache
def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)


def draft(response: Any, *, context: Context | None = None, account: str | None = None) -> Message:
    """A response as one message. The `context` it answers undoes ids and names that had to become digests."""
    data = plain(response)
    candidate = (items(data.get("candidates")) or [{}])[0]
    parts = items(_get(candidate.get("content"), "parts"))
    reader = PartReader(data, original_names(context, limits=(ID_LIMIT, NAME_LIMIT)), account)
    blocks = [reader.block(part, index) for index, part in enumerate(parts) if any(part.values())]
    end = _ending(data, candidate, blocks)
    usage = _get(data, "usage_metadata")
    return Message(
        role="assistant",
        blocks=blocks,
        model=_get(data, "model_version"),
        request=_get(data, "response_id"),
        usage=usage_of(fields(usage)) if isinstance(usage, dict) else None,
        stop=end.stop,
        error=end.error,
    )


def _ending(data: dict[str, Any], candidate: dict[str, Any], blocks: list[AnyBlock]) -> Ending:
    reason = str(_get(candidate, "finish_reason") or "")
    stop: Stop = _STOPS.get(reason, "error" if reason else "aborted")
    blocked, words = _get(_get(data, "prompt_feedback"), "block_reason"), _get(candidate, "finish_message")
    if blocked or reason in _REFUSALS or stop == "error":
        is_refusal = blocked or reason in _REFUSALS
        error = {"type": "refusal", "reason": blocked or reason} if is_refusal else {"type": reason.lower()}
        return Ending("error", {**error, "message": words} if words else error)
    is_called = any(isinstance(block, ToolCall) and block.by is None for block in blocks)
    return Ending("tool_use" if stop == "end" and is_called else stop)


class PartReader:
    """Reads the parts of one content."""

    def __init__(
        self,
        data: dict[str, Any],
        originals: dict[str, str],
        account: str | None,
        waiting: list[ToolCall] | None = None,
    ) -> None:
        self._originals = originals
        self._account = account
        self._waiting = [] if waiting is None else waiting
        """The calls that wait for a response."""
        self._seed = str(_get(data, "response_id") or sha256(msgspec.json.encode(data)).hexdigest()[:16])
        self._last_run = ""

    def _meta(self, mine: dict[str, Any], signature: Any) -> dict[str, Any] | None:
        return tagged(PROVIDER, {**mine, "signature": signature}, self._account)

    def block(self, part: dict[str, Any], index: int) -> AnyBlock:
        """A part as a block."""
        signature = _get(part, "thought_signature")
        media = _get(part, "inline_data") or _get(part, "file_data")
        if part.get("thought"):
            data = (self._meta({}, signature) or {}).get(PROVIDER)
            return Thinking(text=part.get("text") or "", provider=PROVIDER, data=data)
        if isinstance(part.get("text"), str):
            return Text(text=part["text"], meta=self._meta({}, signature))
        call = _get(part, "function_call")
        if isinstance(call, dict):
            return ToolCall(
                id=log_name(str(_get(call, "id") or f"{self._seed}-{index}"), self._originals),
                name=log_name(str(_get(call, "name") or ""), self._originals),
                input=storable(unwrapped(_get(call, "args") or {})),
                meta=self._meta({}, signature),
            )
        if isinstance(media, dict):
            return self._media(fields(media), signature) or _unknown(part)
        answer = _get(part, "function_response")
        return self._run(part, index) if answer is None else self._result(fields(answer), index)

    def _result(self, answer: dict[str, Any], index: int) -> ToolResult:
        """What a tool of the caller's said: as text where that is all, else as JSON."""
        response = fields(answer.get("response"))
        key = next(iter(response), "")
        is_text = len(response) == 1 and key in _RESULT_KEYS and isinstance(response[key], str)
        return ToolResult(
            call=self._answered_call(answer) or f"{self._seed}-{index}",
            content=response[key] if is_text else json.dumps(response, ensure_ascii=False),
            is_error=list(response) == ["error"],
            name=answer.get("name"),
        )

    def _answered_call(self, answer: dict[str, Any]) -> str:
        """The id of the call that a response answers: its own, else that of the first such call without a response."""
        id, name = log_name(str(answer.get("id") or ""), self._originals), str(answer.get("name") or "")
        fitting = [call for call in self._waiting if (call.id == id if id else call.name == name)]
        call = next(iter(fitting or ([] if id else self._waiting)), None)
        if call is None:
            return id
        self._waiting.remove(call)
        return call.id

    def _media(self, media: dict[str, Any], signature: Any) -> AnyBlock | None:
        kind = str(_get(media, "mime_type") or "")
        cls = Image if kind.startswith("image/") else File
        name, meta = _get(media, "display_name"), self._meta({}, signature)
        if _get(media, "file_uri"):
            return cls(media_type=kind, file=_get(media, "file_uri"), provider=PROVIDER, name=name, meta=meta)
        text = str(media.get("data") or "").replace("-", "+").replace("_", "/")
        data = from_base64(text + "=" * (-len(text) % 4))
        return cls(media_type=kind, data=data, name=name, meta=meta) if data else None

    def _run(self, part: dict[str, Any], index: int) -> AnyBlock:
        """What Gemini ran itself, and what came of it."""
        meta = tagged(PROVIDER, {"part": part}, self._account)
        code, tool = _get(part, "executable_code"), _get(part, "tool_call")
        if code is not None or tool is not None:
            form = fields(code) or fields(tool)
            self._last_run = str(_get(form, "id") or f"{self._seed}-{index}")
            name = "code_execution" if code else str(_get(form, "tool_type") or "tool").lower()
            given = {"language": form.get("language"), "code": form.get("code")} if code else _get(form, "args")
            return ToolCall(id=self._last_run, name=name, input=given, by="provider", meta=meta)
        execution, response = _get(part, "code_execution_result"), _get(part, "tool_response")
        if execution is not None or response is not None:
            form = fields(execution) or fields(response)
            call = str(_get(form, "id") or self._last_run)
            answer = form.get("output") if execution else msgspec.json.encode(form.get("response")).decode()
            failed = execution is not None and form.get("outcome") not in (None, "OUTCOME_OK")
            return ToolResult(call=call, content=str(answer or ""), is_error=failed, meta=meta)
        return _unknown(part)


def _unknown(part: dict[str, Any]) -> UnknownBlock:
    return UnknownBlock(kind="gemini", json=msgspec.json.encode(part).decode())


def usage_of(raw: dict[str, Any]) -> Usage:
    """The usage of a response. Gemini's input includes what was cached; thoughts and tool input are counted apart."""
    get = raw.get  # both spellings by hand: recorded sessions are read with this
    cached = token_count(get("cachedContentTokenCount") or get("cached_content_token_count"))
    thoughts = token_count(get("thoughtsTokenCount") or get("thoughts_token_count"))
    prompt = token_count(get("promptTokenCount") or get("prompt_token_count"))
    return Usage(
        input_tokens=max(0, prompt - cached)
        + token_count(get("toolUsePromptTokenCount") or get("tool_use_prompt_token_count")),
        cache_read_tokens=cached,
        output_tokens=token_count(get("candidatesTokenCount") or get("candidates_token_count")) + thoughts,
        reasoning_tokens=thoughts,
    )


class GeminiStream(TimedStream):
    """A streamed response: feed it the chunks, then take the message."""

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
        self._candidate: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []

    def feed(self, event: Any) -> None:
        """Take the next chunk: a response that holds what is new."""
        data = plain(event)
        candidate = (items(data.get("candidates")) or [{}])[0]
        for part in items(_get(candidate.get("content"), "parts")):
            self._add(part)
        said = (value for part in self._parts for key, value in part.items() if key != "thought")
        self._timing.note_event(is_token=any(said))
        self._candidate.update({key: value for key, value in candidate.items() if value is not None})
        self._response.update({key: value for key, value in data.items() if value is not None})

    def _add(self, part: dict[str, Any]) -> None:
        """Text goes on where it stopped; a part with a signature stays by itself, as the signature is of that part."""
        last = self._parts[-1] if self._parts else {}
        is_text = all(set(one) <= {"text", "thought"} and isinstance(one.get("text"), str) for one in (last, part))
        if is_text and last.get("thought") == part.get("thought"):
            self._parts[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            self._parts.append(part)

    def finish(self) -> Message:
        """What arrived."""
        candidate = {**self._candidate, "content": {"parts": self._parts}}
        response = {**self._response, "candidates": [candidate]}
        return self._timing.with_times(draft(response, context=self._context, account=self._account))
