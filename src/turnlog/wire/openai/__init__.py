"""The two dialects of OpenAI: the Responses API and Chat Completions, which many others speak as well.

    request = openai.request(s.context(), model="gpt-5")                    # client.responses.create(**request)
    request = openai.request(s.context(), model="gpt-5", api="chat")        # client.chat.completions.create(**request)
    s.append(openai.draft(response))                                        # of either
    s.append(*openai.messages(items))                                       # a history that somebody else kept

The Responses API gives reasoning back only as `encrypted_content`; where a model does not send that by default,
ask for it with `include=["reasoning.encrypted_content"]`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, get_args

from turnlog.errors import Invalid
from turnlog.log.context import Context
from turnlog.log.context.nativecompaction import note_answered_head
from turnlog.log.entry import Message
from turnlog.wire import Request, RequestBuilder, plain
from turnlog.wire._original import original_names
from turnlog.wire._timing import Timing
from turnlog.wire._tool import tool_choice_of, tools_of
from turnlog.wire.openai import chat, responses
from turnlog.wire.openai.item import messages
from turnlog.wire.openai.part import ID_LIMIT, NAME_LIMIT, PROVIDER
from turnlog.wire.openai.stream import ChatStream, ResponsesStream

__all__ = ["PROVIDER", "Stream", "draft", "messages", "request"]

Api = Literal["responses", "chat"]
_APIS = get_args(Api)


def _check(api: str) -> None:
    if api not in _APIS:
        raise Invalid(f"the api {api!r}", hint=f"one of {', '.join(_APIS)}")


def request(
    context: Context,
    *,
    model: str,
    api: Api = "responses",
    max_tokens: int | None = None,
    tool_choice: str | None = None,
    cache_marks: Literal["auto", "explicit"] = "auto",
    account: str | None = None,
    **options: Any,
) -> Request:
    """The context for `client.responses.create(**request)`, or with `api="chat"` for `client.chat.completions`.

    `options` go along as they are. The Responses API is told the context's `cache_key` as `prompt_cache_key`, unless
    that is among them (None: not at all); Chat Completions, which many servers speak, only if it is.
    `tool_choice` is auto, none, required or a tool's name. `cache_marks="explicit"` marks the end of every message of
    the user's, for models that take marks; they stay where they are, so no byte changes from turn to turn.
    Reasoning, compactions and server-run tools of another `account` are left out.
    """
    _check(api)
    if cache_marks not in ("auto", "explicit"):
        raise Invalid(f"cache_marks={cache_marks!r}", hint="auto or explicit")
    builder = RequestBuilder(context, PROVIDER, account, limit=ID_LIMIT)
    tools = tools_of(builder, limit=NAME_LIMIT)
    choice = tool_choice_of(builder, tool_choice, tools, limit=NAME_LIMIT)
    request_fields = (responses if api == "responses" else chat).request(builder, tools, choice, max_tokens)
    if api == "chat" and options.get("stream") and "stream_options" not in options:
        request_fields["stream_options"] = {"include_usage": True}
    if cache_marks == "explicit":
        _mark(request_fields["input" if api == "responses" else "messages"])
    if api == "responses" and context.cache_key:
        request_fields["prompt_cache_key"] = context.cache_key
    if options.get("prompt_cache_key", "") is None:
        del options["prompt_cache_key"]
        request_fields.pop("prompt_cache_key", None)
    return Request({"model": model, **request_fields, **options}, builder.report, context)


def _mark(messages: list[dict[str, Any]]) -> None:
    """Mark where the user stops speaking; where the request ends, OpenAI marks it by itself."""
    for item in messages:
        if item.get("role") == "user":
            content = item["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            item["content"] = [*parts[:-1], {**parts[-1], "prompt_cache_breakpoint": {"mode": "explicit"}}]


def draft(response: Any, *, context: Context | None = None, account: str | None = None) -> Message:
    """A response of either API, also of `client.responses.compact`, as one message.

    The `context` it answers undoes ids that had to become digests, and tells how much a compaction in it stands for;
    without it, that is everything that was said before the message is appended.
    """
    data = plain(response)
    originals = original_names(context, limits=(ID_LIMIT,))
    message = (chat if "choices" in data else responses).draft(data, originals, account)
    return note_answered_head(message, None if context is None else context.head_id)


def Stream(
    *,
    api: Api = "responses",
    request: Request | None = None,
    context: Context | None = None,
    account: str | None = None,
    clock: Callable[[], float] = time.time,
) -> ResponsesStream | ChatStream:
    """A streamed response of either API: feed it the events, then take the message."""
    _check(api)
    if context is None and request is not None:
        context = request.context
    originals, timing = original_names(context, limits=(ID_LIMIT,)), Timing(PROVIDER, request, clock, context)
    stream = ResponsesStream if api == "responses" else ChatStream
    return stream(originals, account, timing)
