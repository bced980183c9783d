"""Entries in the words of OpenTelemetry's conventions for generative AI: attributes of spans, and messages as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.entry import Answer, AnyEntry, Ask, Compaction, Custom, Edit, Message
from turnlog.log.plainjson import json_bytes
from turnlog.log.usage import Usage
from turnlog.thread.call.ending import error_text
from turnlog.view.otel.otlp import SpanError

_PROVIDERS = {"gemini": "gcp.gemini"}
_MODELS = {
    "claude": "anthropic", "gpt": "openai", "codex": "openai", "o1": "openai", "o3": "openai", "o4": "openai",
    "gemini": "gcp.gemini", "grok": "x_ai", "deepseek": "deepseek", "mistral": "mistral_ai", "devstral": "mistral_ai",
    "codestral": "mistral_ai", "command": "cohere",
}  # fmt: skip
"""How the names of models begin, for sessions that do not say whom they asked."""
_NUMBERS = {
    "temperature": ("temperature",), "top_p": ("top_p",), "top_k": ("top_k",),
    "frequency_penalty": ("frequency_penalty",), "presence_penalty": ("presence_penalty",),
}  # fmt: skip
_WHOLE = {
    "max_tokens": ("max_tokens", "max_output_tokens", "max_completion_tokens"), "seed": ("seed",),
    "choice.count": ("n", "candidate_count"),
}  # fmt: skip
_FINISHED = {"end": "stop", "tool_use": "tool_call", "length": "length", "error": "error"}
_INT64 = 1 << 63
OTHER_ERROR = "_OTHER"
"""The name that the conventions have for an error of unknown type."""


# ── what was asked, and what it cost ──────────────────────────────────────────────────────────────


def provider_of(provider: str | None, model: str | None) -> str:
    """The provider of a request, by its name in the conventions; guessed from the model if it is not recorded."""
    if provider is not None:
        return _PROVIDERS.get(provider, provider)
    name = (model or "").rpartition("/")[2].lower()
    return next((provider for begin, provider in _MODELS.items() if name.startswith(begin)), "unknown")


def request(message: Message) -> dict[str, Any]:
    """The attributes of a request, without the conversation."""
    options = cast("dict[str, Any]", message.options) if isinstance(message.options, dict) else {}
    model = options.get("model")
    attributes: dict[str, Any] = {"gen_ai.request.model": model if isinstance(model, str) else message.model}
    for name, keys in _NUMBERS.items():
        number = _number(options, keys)
        attributes[f"gen_ai.request.{name}"] = None if number is None else _double(number)
    for name, keys in _WHOLE.items():
        number = _number(options, keys)
        if isinstance(number, int) and abs(number) < _INT64 and (name, number) != ("choice.count", 1):
            attributes[f"gen_ai.request.{name}"] = number
    stop = options.get("stop_sequences", options.get("stop"))
    stop = [stop] if isinstance(stop, str) else stop
    if isinstance(stop, list) and all(isinstance(one, str) for one in cast("list[Any]", stop)):
        attributes["gen_ai.request.stop_sequences"] = stop
    if message.first_token_ms is not None:
        attributes["gen_ai.request.stream"] = True
    return attributes


def _number(options: dict[str, Any], names: Iterable[str]) -> int | float | None:
    numbers = (options[name] for name in names if name in options)
    return next((one for one in numbers if isinstance(one, (int, float)) and not isinstance(one, bool)), None)


def _double(number: float) -> float | None:
    """The number as OTLP has it; None if it is too large for that."""
    try:
        return float(number)
    except OverflowError:
        return None


def response(message: Message) -> dict[str, Any]:
    """The attributes of a response, without its content."""
    reason = _FINISHED.get(message.stop or "")
    first = message.first_token_ms
    return {
        "gen_ai.response.id": message.request,
        "gen_ai.response.model": message.model,
        "gen_ai.response.finish_reasons": None if reason is None else [reason],
        "gen_ai.response.time_to_first_chunk": None if first is None else first / 1000,
        **used(message.usage),
    }


def used(usage: Usage | None) -> dict[str, Any]:
    """Tokens: here the input is all of it, and what a cache had is a part of that."""
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.all_input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens or None,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens + usage.cache_write_1h_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
    }


def failure(message: Message) -> SpanError | None:
    """The error that ended a request; None if it completed."""
    error_value: Any = message.error
    if message.stop != "error" and error_value is None:
        return SpanError("aborted", "the answer broke off") if message.stop == "aborted" else None
    error = cast("dict[str, Any]", error_value) if isinstance(error_value, dict) else {}
    kind = next((error[name] for name in ("type", "code", "status") if isinstance(error.get(name), (str, int))), None)
    return SpanError(str(kind or OTHER_ERROR), error_text(error_value) or "")


# ── what was said ─────────────────────────────────────────────────────────────────────────────────


def messages(spoken: list[Message], *, is_output: bool = False) -> str | None:
    """The text of JSON for `gen_ai.input.messages` and `gen_ai.output.messages`; None where there are none."""
    rows = [{"role": message.role, "parts": parts(message.blocks)} for message in spoken]
    if is_output:
        rows = [
            {**one, "finish_reason": _FINISHED.get(message.stop or "", "stop")}
            for one, message in zip(rows, spoken, strict=True)
        ]
    return to_json(rows) if rows else None


def parts(blocks: Iterable[AnyBlock]) -> list[dict[str, Any]]:
    """What a message is made of. Bytes stay here: a part only says that there were some."""
    return [_part(block) for block in blocks]


def _part(block: AnyBlock) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "content": block.text}
        case Thinking():
            return {"type": "reasoning", "content": block.text}
        case ToolCall():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.input}
        case ToolResult():
            return {"type": "tool_call_response", "id": block.call, "response": result(block)}
        case Image() | File():
            return _media(block)
        case UnknownBlock():
            return {"type": block.kind}


def result(block: ToolResult) -> Any:
    """What a tool answered: text, or parts."""
    return block.content if isinstance(block.content, str) else parts(block.content)


def _media(block: Image | File) -> dict[str, Any]:
    prefix = (block.media_type or "").partition("/")[0]
    modality = "image" if isinstance(block, Image) else prefix if prefix in ("image", "audio", "video") else "file"
    about = {"modality": modality, "mime_type": block.media_type}
    if block.url is not None:
        return {"type": "uri", **about, "uri": block.url}
    if block.file is not None:
        return {"type": "file", **about, "file_id": block.file}
    return {"type": modality, "mime_type": block.media_type}


def to_json(value: Any) -> str:
    """The text of JSON, also of what is no Unicode."""
    return json_bytes(value).decode()


# ── without content ───────────────────────────────────────────────────────────────────────────────


def bare(entry: AnyEntry) -> AnyEntry:
    """An entry without its content."""
    match entry:
        case Message():
            return replace(entry, blocks=_bare(entry.blocks), meta=None, display=None, origin=None, unknown={})
        case Edit() if entry.blocks is not None:
            return replace(entry, blocks=_bare(entry.blocks), meta=None, origin=None, unknown={})
        case Custom():
            return replace(entry, blocks=[], data=None, meta=None, origin=None, unknown={})
        case Compaction():
            return replace(entry, replacement=[], meta=None, origin=None, unknown={})
        case Ask() | Answer():
            return replace(entry, text="", data=None, meta=None, origin=None, unknown={})
        case _:
            return replace(entry, meta=None, origin=None, unknown={})


def _bare(blocks: list[AnyBlock]) -> list[AnyBlock]:
    return [
        replace(block, input=None, meta=None, unknown={}) if isinstance(block, ToolCall)
        else replace(block, content="", details=None, meta=None, unknown={})
        for block in blocks if isinstance(block, (ToolCall, ToolResult))
    ]  # fmt: skip
