"""What a caller says, as the messages that a log keeps of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, cast

from turnlog.errors import Invalid
from turnlog.log.block import AnyBlock, Block, Text, ToolCall, ToolResult, encode
from turnlog.log.draft import check_json
from turnlog.log.entry import Message
from turnlog.session.readonly import as_list

Content = str | Sequence[AnyBlock]
JsonValue = dict[str, Any] | list[Any] | tuple[Any, ...] | int | float | bool | None


class MessageFields(TypedDict, total=False):
    """What else a message may carry; a name that is not here is refused."""

    id: str
    """An id of your own: sent again, it counts once."""
    at: datetime
    """When it happened, where that was not now."""
    turn: str
    agent: str | None
    error: Any
    display: Any
    """What people see instead: text, or False for nothing."""
    meta: Any
    origin: Any


class AnswerFields(MessageFields, total=False):
    """The same for what a model said."""

    duration_ms: int | None
    """From the request to the end of the answer."""
    first_token_ms: int | None
    began_at: datetime | None
    """When the request was made."""
    provider: str | None
    options: Any
    """What the request asked for beside the conversation: the model, limits, temperature."""


class SessionFields(TypedDict, total=False):
    """What a new session may be told; see `Home.create`."""

    workspace: str | os.PathLike[str] | None
    agent: str | None
    title: str | None
    id: str | None
    labels: Mapping[str, str] | None
    resume: Sequence[str]
    hidden: bool


class CompactionFields(TypedDict, total=False):
    """What else a compaction may carry: why it was made, and what its summary cost."""

    id: str
    trigger: str | None
    tokens_before: int | None
    tokens_after: int | None
    model: str | None
    request: str | None
    usage: Any
    meta: Any


def cause_of(error: BaseException) -> str:
    """What went wrong, in a line; of a group of errors each that made it."""
    if isinstance(error, BaseExceptionGroup):
        causes = (cause_of(part) for part in cast("BaseExceptionGroup[BaseException]", error).exceptions)
        return "; ".join(dict.fromkeys(causes))[:1000]
    return f"{type(error).__name__}: {error}"[:1000]


def id_of(call: str | ToolCall) -> str:
    """The id of a call."""
    return call.id if isinstance(call, ToolCall) else call


def blocks_of(content: Content) -> list[AnyBlock]:
    """Text, or blocks."""
    return [Text(content)] if isinstance(content, str) else as_list(content)


def answer_of(
    call: str | ToolCall,
    content: str | bytes | Sequence[AnyBlock] | JsonValue,
    *,
    is_error: bool,
    duration_ms: int | None,
    details: Any,
    child: str | None,
    fields: MessageFields,
) -> Message:
    """A tool's answer. What is neither text nor blocks is JSON, and a model reads it as that."""
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
