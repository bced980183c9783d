"""The header field of a session that is a copy: of which session, how far, and what the copied part cost.

The copy carries no spending in the places where tools look for it. What was spent stands here, for the day on which
none of the sessions it was written from is left.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

MARK = "turnlog"
"""The field of a header in which it stands."""
_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
_Ms = Annotated[int, Meta(ge=0, lt=1 << 43)]


class CopyOf(Struct, frozen=True, array_like=True):
    """A session that was copied: its id with us, and the agent and identity it was imported from."""

    session: str
    agent: str = ""
    identity: str = ""


class CopiedSpending(Struct, frozen=True, array_like=True):
    """What requests to one model cost in some time. `of` says which session made them: it, or one before it, counts."""

    of: _Count
    at: _Ms
    model: str
    input_tokens: _Count
    cache_read_tokens: _Count
    cache_write_tokens: _Count
    cache_write_1h_tokens: _Count
    output_tokens: _Count
    reasoning_tokens: _Count
    cost_micros: _Count | None = None


class Copied(Struct, frozen=True, omit_defaults=True):
    """The sessions that a session is a copy of, and how much of it is copied."""

    of: Annotated[list[CopyOf], Meta(min_length=1)]
    """What it was written from; behind it those that this one was forked or written from, the nearest first."""
    messages: _Count = 0
    """So many of its messages are no older than `until`, and were there when it was written."""
    until: _Ms = 0
    spent: list[CopiedSpending] = []


def copied_in(header: dict[str, Any], name: str = MARK) -> Copied | None:
    """The field in a header; None if it is missing or invalid."""
    if name not in header:
        return None
    try:
        return convert(header[name], Copied)
    except ValidationError:
        return None


def mark_of(copied: Copied | None) -> dict[str, Any]:
    """The field for a header; empty for a session that is no copy."""
    return {MARK: to_builtins(copied)} if copied is not None else {}
