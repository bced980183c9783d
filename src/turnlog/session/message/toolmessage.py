"""The message with a tool's result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Block, ToolCall, ToolResult
from turnlog.log.draft import check_json
from turnlog.log.entry import Message
from turnlog.log.plainjson import encode
from turnlog.session.message.content import JsonValue, id_of
from turnlog.session.message.fields import MessageFields


def tool_message(
    call: str | ToolCall,
    content: str | bytes | Sequence[AnyBlock] | JsonValue,
    *,
    is_error: bool,
    duration_ms: int | None,
    details: Any,
    child: str | None,
    fields: MessageFields,
) -> Message:
    """A tool's result as a message. Content that is neither text nor blocks is encoded as JSON."""
    result = ToolResult(
        call=id_of(call),
        content=_output(content),
        is_error=is_error,
        name=call.name if isinstance(call, ToolCall) else None,
        duration_ms=duration_ms,
        details=details,
        child=child,
    )
    return Message(role="tool", blocks=[result], **fields)


def _output(content: Any) -> str | list[AnyBlock]:
    if isinstance(content, str):
        return content
    if isinstance(content, bytes):
        return content.decode("utf-8", "surrogateescape")
    parts = cast("list[Any]", content) if isinstance(content, (list, tuple)) else []
    blocks = [part for part in parts if isinstance(part, Block)]
    if isinstance(content, (list, tuple)) and len(blocks) == len(parts):
        return cast("list[AnyBlock]", blocks)
    if blocks:
        raise Invalid(f"{parts!r:.80} is neither blocks nor JSON", hint="a list of one or of the other")
    check_json(content, "the result")
    try:
        return encode(content).decode()
    except UnicodeEncodeError as error:
        raise Invalid(f"the result has text that is not Unicode: {error}") from None
