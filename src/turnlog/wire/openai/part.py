"""What both of OpenAI's dialects have in common."""

from __future__ import annotations

from typing import Any

import msgspec

from turnlog.log.block import ToolCall

PROVIDER = "openai"
ID_LIMIT = 64
NAME_LIMIT = 64
REFUSAL = "refusal"


def arguments_of(call: ToolCall) -> str:
    """A call's input as the JSON text that OpenAI takes."""
    return "{}" if call.input is None else msgspec.json.encode(call.input).decode()


def input_of(arguments: Any) -> Any:
    """A call's input. Models do write JSON that is none: that stays text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments) if arguments.strip() else {}
    except msgspec.DecodeError:
        return arguments


def is_whole(arguments: Any) -> bool:
    """Whether the arguments of a call have arrived to their end: no beginning of an object is one."""
    return isinstance(arguments, str) and isinstance(input_of(arguments), dict) and bool(arguments.strip())
