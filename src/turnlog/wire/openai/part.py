"""What both of OpenAI's dialects have in common."""

from __future__ import annotations

from typing import Any

import msgspec

from turnlog.interop.value import token_count
from turnlog.log.block import ToolCall
from turnlog.log.usage import Usage
from turnlog.wire._tool import input_of as input_of

PROVIDER = "openai"
ID_LIMIT = 64
NAME_LIMIT = 64
REFUSAL = "refusal"
COMPACTION = "compaction"
RUN_BY_PROVIDER = frozenset((
    "code_interpreter_call", "file_search_call", "image_generation_call", "mcp_call", "mcp_list_tools",
    "tool_search_call", "tool_search_output", "web_search_call",
))  # fmt: skip
"""Items of tools that OpenAI runs itself."""


def arguments_of(call: ToolCall) -> str:
    """A call's input as the JSON text that OpenAI takes."""
    return "{}" if call.input is None else msgspec.json.encode(call.input).decode()


def is_whole(arguments: Any) -> bool:
    """Whether the arguments of a call have arrived to their end: no beginning of an object is one."""
    return isinstance(arguments, str) and isinstance(input_of(arguments), dict) and bool(arguments.strip())


def usage_of(raw: dict[str, Any]) -> Usage:
    """The usage of a response of either API; OpenAI's input includes what was cached."""
    chat = "prompt_tokens" in raw
    given, taken = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
    cached = token_count(raw, f"{given}_details", "cached_tokens")
    written = token_count(raw, f"{given}_details", "cache_write_tokens")
    return Usage(
        input_tokens=max(0, token_count(raw, given) - cached - written),
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=token_count(raw, taken),
        reasoning_tokens=token_count(raw, f"{taken}_details", "reasoning_tokens"),
    )
