"""The providers' own request and response types, from their SDKs, as the judges of what we make."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from pydantic import TypeAdapter


def exhausted(value: Any) -> Any:
    """A validated value, its lazy parts included: the SDKs' iterables check nothing until they are read."""
    if isinstance(value, dict):
        return {key: exhausted(item) for key, item in value.items()}
    if value is None or isinstance(value, str | bytes | int | float):
        return value
    if hasattr(value, "model_dump"):  # they take blocks of responses as well, and find them to fit better
        return value.model_dump(mode="json", exclude_unset=True)
    return [exhausted(item) for item in value]


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "anthropic":
            from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Params
        elif kind == "anthropic-beta":
            from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as Params
        elif kind == "responses":
            from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as Params
        else:
            from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as Params
        return TypeAdapter(Params)


def check(kind: str, request: dict[str, Any]) -> None:
    """Refuse a request that the SDK's types do not take, or in which they know nothing of a field."""
    if kind == "gemini":
        from google.genai import types

        for content in request["contents"]:
            types.Content.model_validate(content)
        types.GenerateContentConfig.model_validate(request["config"])
        return
    if kind == "anthropic" and any(_has_compaction(message["content"]) for message in request["messages"]):
        kind = "anthropic-beta"
    seen = exhausted(_adapter(kind).validate_python(dict(request)))
    assert seen == plain(request), "a field that the SDK's types do not know"


def _has_compaction(content: list[dict[str, Any]]) -> bool:
    """Whether it has a block that only the beta types of Anthropic know."""
    return any(isinstance(block, dict) and block["type"] == "compaction" for block in content)


def plain(value: Any) -> Any:
    """The same without our dict class."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def response(kind: str, data: dict[str, Any]) -> Any:
    """A response as the SDK hands it out."""
    if kind == "anthropic":
        from anthropic.types import Message
        from anthropic.types.beta import BetaMessage

        return (BetaMessage if _has_compaction(data.get("content", [])) else Message).model_validate(data)
    if kind == "gemini":
        from google.genai.types import GenerateContentResponse

        return GenerateContentResponse.model_validate(data)
    if kind == "responses":
        from openai.types.responses import CompactedResponse, Response

        return (CompactedResponse if data.get("object") == "response.compaction" else Response).model_validate(data)
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_validate(data)


@cache
def _events(kind: str) -> TypeAdapter[Any]:
    if kind == "anthropic":
        from anthropic.types.beta import BetaRawMessageStreamEvent as Event
    elif kind == "gemini":
        from google.genai.types import GenerateContentResponse as Event
    elif kind == "responses":
        from openai.types.responses import ResponseStreamEvent as Event
    else:
        from openai.types.chat import ChatCompletionChunk as Event
    return TypeAdapter(Event)


def event(kind: str, data: dict[str, Any]) -> Any:
    """A streamed event as the SDK hands it out."""
    return _events(kind).validate_python(data)
