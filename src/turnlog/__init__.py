"""The session layer for AI coding agents: a durable, append-only log of what an agent said and did."""

from __future__ import annotations

from turnlog.errors import (
    AlreadyExists,
    Ambiguous,
    Conflict,
    Corrupt,
    Invalid,
    NotFound,
    OutOfSpace,
    TurnlogError,
    TurnlogWarning,
    Unavailable,
    Unsupported,
)  # fmt: skip
from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.codec import Damage
from turnlog.log.context import Context
from turnlog.log.entry import Compaction, Custom, Edit, Entry, Message, Note, Ref, Set, Spent
from turnlog.log.usage import Usage, UsageReport
from turnlog.session import Home, Session
from turnlog.session import open_home as open
from turnlog.session.places import instructions
from turnlog.version import __version__

__all__ = [
    "AlreadyExists", "Ambiguous", "Compaction", "Conflict", "Context", "Corrupt", "Custom", "Damage", "Edit", "Entry",
    "File", "Home", "Image", "Invalid", "Message", "NotFound", "Note", "OutOfSpace", "Ref", "Session", "Set", "Spent",
    "Text", "Thinking", "ToolCall", "ToolResult", "TurnlogError", "TurnlogWarning", "Unavailable", "UnknownBlock",
    "Unsupported", "Usage", "UsageReport", "__version__", "instructions", "open",
]  # fmt: skip
