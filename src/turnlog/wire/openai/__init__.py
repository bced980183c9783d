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
from turnlog.log.entry import Message
from turnlog.wire import Feed, Request, RequestBuilder, known_names, plain
from turnlog.wire._timing import Timing
from turnlog.wire._tool import chosen, declared
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
    account: str | None = None,
    **options: Any,
) -> Request:
    """The context for `client.responses.create(**request)`, or with `api="chat"` for `client.chat.completions`.

    `options` go along as they are. `tool_choice` is auto, none, required or a tool's name. Reasoning and server-run
    tools of another `account` are left out.
    """
    _check(api)
    work = RequestBuilder(context, PROVIDER, account, limit=ID_LIMIT)
    tools = declared(work, limit=NAME_LIMIT)
    choice = chosen(work, tool_choice, tools, limit=NAME_LIMIT)
    made = (responses if api == "responses" else chat).request(work, tools, choice, max_tokens)
    if api == "chat" and options.get("stream") and "stream_options" not in options:
        made["stream_options"] = {"include_usage": True}
    return Request({"model": model, **made, **options}, work.report)


def draft(response: Any, *, context: Context | None = None, account: str | None = None) -> Message:
    """A response of either API as one message. The `context` it answers undoes ids that had to become digests."""
    data = plain(response)
    known = known_names(context, limits=(ID_LIMIT,))
    return (chat if "choices" in data else responses).draft(data, known, account)


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
    known, timing = known_names(context, limits=(ID_LIMIT,)), Timing(PROVIDER, request, clock)
    made: Feed = ResponsesStream(known, account, timing) if api == "responses" else ChatStream(known, account, timing)
    return made
