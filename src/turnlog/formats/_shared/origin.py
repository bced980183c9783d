"""Which agent an entry was read from, and what its record had besides."""

from __future__ import annotations

from typing import Any

from turnlog.formats._shared.value import fields
from turnlog.log.entry import AnyEntry, Entry

UNKNOWN = "unknown_type"
"""In the `origin` of an entry: the type of a record that nobody here knew."""


def origin_of(entry: AnyEntry, agent: str) -> dict[str, Any] | None:
    """What an agent's own record had besides, for an entry that was one."""
    origin = fields(entry.origin)
    return origin if origin.get("agent") == agent else None


def is_of(entry: AnyEntry, agent: str) -> bool:
    """Whether an entry was a record of that agent's."""
    return origin_of(entry, agent) is not None


def unknown_type(entry: Entry) -> str | None:
    """The type of a record that was kept because nobody knew it; None for every other entry."""
    kind = fields(entry.origin).get(UNKNOWN)
    return kind if isinstance(kind, str) else None
