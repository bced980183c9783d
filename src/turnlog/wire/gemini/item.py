"""Contents of Gemini's, sent or received, as messages of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from turnlog.errors import Invalid
from turnlog.interop.value import items
from turnlog.log.block import ToolCall, ToolResult, calls_in
from turnlog.log.entry import Message, Role
from turnlog.wire import Received, plain
from turnlog.wire.gemini.answer import PartReader

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "tool", "tool": "tool", "system": "system"}


def messages(given: Iterable[Any], *, account: str | None = None) -> Received:
    """A message for each content, in their order; `report` names what a message cannot say of its content.

    Responses without an id, as Gemini 2 has them, answer the calls of the last model content, in order and by name.
    """
    received = Received()
    waiting: list[ToolCall] = []
    last_role = ""
    for content in given:
        message = message_of(plain(content), account, waiting)
        if message.role == "assistant":
            waiting[:] = (waiting if last_role == "assistant" else []) + calls_in(message.blocks)
        last_role = message.role
        received.take([message], "content")
    return received


def message_of(content: dict[str, Any], account: str | None = None, waiting: list[ToolCall] | None = None) -> Message:
    """One content as one message; the answers of tools make it a tool's, and leave `waiting` without their calls."""
    role = content.get("role") or "user"
    if role not in _ROLES:
        raise Invalid(f"the role {role!r:.40}", hint=f"one of {', '.join(_ROLES)}")
    reader = PartReader(content, {}, account, waiting)
    blocks = [reader.block(part, index) for index, part in enumerate(items(content.get("parts"))) if any(part.values())]
    is_answer = any(isinstance(block, ToolResult) and block.meta is None for block in blocks)
    return Message(role="tool" if is_answer else _ROLES[role], blocks=blocks)
