"""Rows of the tables, as they are written; `sqlite/schema.py` says what each column means."""

# Rows that are made for each record are plain tuples: to make a named one takes several times as long.

from __future__ import annotations

from typing import TypedDict

from turnlog.log.startup import NamedTuple

Counts = tuple[int, int, int, int, int, int]
"""The tokens of a request, in the order of `COUNTS`."""
SpentRow = tuple[int, int, int, int, str, bool, bool, int | None, int, int, int, int, int, int]
"""A row of `spent`: session, step, token, at, model, is_reported, is_total, cost, and `Counts`."""
ToolUseRow = tuple[int, int, str, int, int, int]
"""A row of `used`: session, step, tool, calls, errors, took."""


class SessionRow(TypedDict, total=False):
    """Columns of `sessions`. Whoever reads a session fills those of its content; settling fills the others."""

    name: str
    native: str
    agent: str | None
    path: str | bytes
    workspace: str | bytes | None
    title: str | None
    preview: str
    model: str | None
    created: int | None
    updated: int | None
    messages: int
    turns: int
    tool_calls: int
    branches: int
    fork: str | None
    parent: str | None
    origin: str
    is_hidden: bool
    is_archived: bool
    is_deleted: bool
    copied: str
    carried: int
    tags: str
    models: str
    git_branches: str
    before: str
    is_conversation: bool
    ending: str
    writer: str
    damage: int
    problem: str
    size: int
    resume: str
    totals: str
    stamp: str
    mark: bytes | None
    seq: int
    """The last entry that was read; only in PostgreSQL."""


class GlanceRow(NamedTuple):
    """The columns of `sessions` that a glance fills."""

    name: str
    native: str
    is_ours: bool
    agent: str | None
    path: str | bytes
    key: str
    workspace: str | bytes | None
    title: str | None
    preview: str
    created: int | None
    updated: int
    fork: str | None
    parent: str | None
    is_hidden: bool
    is_deleted: bool
    is_conversation: bool
    size: int
    ending: str
