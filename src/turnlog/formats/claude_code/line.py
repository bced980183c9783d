"""What people and models said, as far as it matters. Any other line is decoded whole."""

# Without `from __future__ import annotations`, as in `turnlog.log.entry`.
from typing import Any

from msgspec import UNSET, Struct, convert, field
from msgspec.json import Decoder

from turnlog.formats._shared.value import fields
from turnlog.log.entry import Message


class _Said(Struct, gc=False):
    """A message of the API, or a part of one."""

    content: Any = None
    usage: Any = None
    id: Any = UNSET
    model: Any = UNSET
    stop_reason: Any = UNSET
    stop_sequence: Any = UNSET
    stop_details: Any = UNSET
    error: Any = UNSET
    partial: Any = UNSET


_ABOUT = ("id", "model", "stop_reason", "stop_sequence", "stop_details", "error", "partial")


def about(message: _Said) -> dict[str, Any]:
    """All but what it says and what it cost, as the API would tell it."""
    return {name: value for name in _ABOUT if (value := getattr(message, name)) is not UNSET}


class ClaudeLine(Struct, tag_field="type", tag="user", gc=False):
    """What people or tools said."""

    uuid: str
    message: _Said
    timestamp: Any = None
    parent: Any = field(default=UNSET, name="parentUuid")
    logical: Any = field(default=None, name="logicalParentUuid")
    is_side: Any = field(default=None, name="isSidechain")
    is_meta: Any = field(default=None, name="isMeta")
    is_hidden: Any = field(default=None, name="isVisibleInTranscriptOnly")
    is_summary: Any = field(default=None, name="isCompactSummary")
    team: Any = field(default=None, name="teamName")
    branch: Any = field(default=None, name="gitBranch")
    fork: Any = field(default=None, name="forkedFrom")
    details: Any = field(default=None, name="toolUseResult")
    request: Any = field(default=None, name="requestId")
    prompt: Any = field(default=None, name="promptId")
    error: Any = None
    is_error: Any = field(default=None, name="isApiErrorMessage")


class ClaudeAnswer(ClaudeLine, tag="assistant"):
    """What a model said."""


decode_line = Decoder(ClaudeLine | ClaudeAnswer).decode


def line_of(record: dict[str, Any]) -> ClaudeLine:
    """The same of a record that was decoded whole."""
    kind = ClaudeAnswer if record["type"] == "assistant" else ClaudeLine
    return convert({**record, "message": fields(record.get("message"))}, kind)


def key_of(uuid: str, fork: Any) -> str:
    """The record's own id; in a fork that of what it is a copy of."""
    copied = fields(fork).get("messageUuid") if fork is not None else None
    return copied if isinstance(copied, str) else uuid


def is_live(line: ClaudeLine) -> bool:
    """Whether the conversation may be at it."""
    return not (line.is_side or line.is_meta or line.team)


def ending(message: _Said) -> dict[str, Any]:
    """How the message ended."""
    return {key: value for key, value in about(message).items() if key in ("stop_reason", "stop_sequence")}


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
