"""The optional fields of what a session appends."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypedDict


class MessageFields(TypedDict, total=False):
    """The optional fields of a message; unknown names are refused."""

    id: str
    """An id of your own: an entry that is sent twice is appended once."""
    at: datetime
    """When it happened, if not now."""
    turn: str
    agent: str | None
    error: Any
    display: Any
    """What people see instead: text, or False for nothing."""
    meta: Any
    origin: Any


class AnswerFields(MessageFields, total=False):
    """The optional fields of a model's message."""

    duration_ms: int | None
    """The time from the request to the end of the answer."""
    first_token_ms: int | None
    began_at: datetime | None
    """The time of the request."""
    provider: str | None
    options: Any
    """The options of the request besides the conversation: the model, limits, temperature."""


class CompactionFields(TypedDict, total=False):
    """The optional fields of a compaction: why it was made, and what its summary cost."""

    id: str
    trigger: str | None
    tokens_before: int | None
    tokens_after: int | None
    model: str | None
    request: str | None
    usage: Any
    meta: Any
