"""What the reader of a transcript remembers."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from turnlog.formats.claude_code.line import ClaudeLine
from turnlog.log.entry import Message


class ClaudeState(Struct, omit_defaults=True):
    """What is known at a mark."""

    before: str
    """The record before it, and its node."""
    last: str
    titles: dict[str, str] = {}
    facts: dict[str, Any] = {}


class Arriving(Struct):
    """An API message that is still arriving, and the results that came in between."""

    key: str
    id: str
    first: ClaudeLine
    parent: str
    content: list[Any]
    uuids: list[str]
    usage: dict[str, Any]
    results: list[tuple[str, str, Message]]
    """Each with the record it is from, and its key."""
    stop: dict[str, Any] = {}
