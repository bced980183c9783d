"""Reports on a session and on a home: pure values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from turnlog.interop.value import fields, token_count
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Compaction, Message, Uncompact
from turnlog.log.fold import State
from turnlog.log.ids import handle_of
from turnlog.log.part import Fork
from turnlog.store import Listed
from turnlog.store.listing import cursor_of

SAFETY_NET_AGENT = "turnlog"
"""The agent of sessions that `turnlog run` and `turnlog checkpoint` open."""


def is_net(state: State) -> bool:
    """Whether the session is a net: opened by `turnlog run` or `turnlog checkpoint`, and no agent has spoken."""
    spoken = state.counts.messages.get("assistant") or state.inherited.counts.messages.get("assistant")
    return state.start.get("agent") == SAFETY_NET_AGENT and not spoken


class Info(Struct, frozen=True):
    """A session in a listing."""

    id: str
    handle: str
    title: str | None
    workspace: str | None
    agent: str | None
    labels: dict[str, str]
    tags: list[str]
    archived: bool
    hidden: bool
    parent: str | None
    """The session that started this one as a subagent."""
    fork: Fork | None
    created_at: datetime | None
    updated_at: datetime | None
    seq: int
    size_bytes: int
    is_readable: bool
    """False if the first line is damaged: see `turnlog doctor`."""
    listed: dict[str, Any] = {}
    """The fact `listed`, a dict of the caller's; empty if it is too big for a line."""
    call: str | None = None
    """The tool call of `parent` that started this session."""

    @property
    def cursor(self) -> str:
        """The cursor for the next page: `home.sessions(after=…)`. It stays valid if the session changes."""
        return str(cursor_of(self.updated_at, self.id))


def info_of(row: Listed) -> Info:
    """The `Info` of a row of a listing."""
    start, last = row.start, row.last
    facts: dict[str, Any] = {}
    if start is not None:
        facts = {"title": start.title, "workspace": start.workspace}
    if row.wide is not None and row.wide.all is not None:
        facts = row.wide.all
    tags, listed = facts.get("tags"), facts.get("listed")
    return Info(
        row.id,
        handle_of(row.id),
        text_fact(facts, "title"),
        text_fact(facts, "workspace"),
        start.agent if start else None,
        start.labels if start else {},
        [str(tag) for tag in tags] if isinstance(tags, list) else [],  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        bool(facts.get("archived")),
        start.hidden if start else False,
        start.spawned.session if start and start.spawned else None,
        start.fork if start else None,
        start.at if start else None,
        last.at if last else None,
        last.seq if last else 0,
        row.size_bytes,
        start is not None,
        listed if row.wide is not None and row.wide.blob is None and isinstance(listed, dict) else {},  # pyright: ignore[reportUnknownArgumentType]
        start.spawned.call if start and start.spawned else None,
    )


def text_fact(facts: Mapping[str, Any], name: str) -> str | None:
    """A fact that is text; None for any other value: a log may come from anywhere."""
    value = facts.get(name)
    return value if isinstance(value, str) else None


class Stats(Struct, frozen=True):
    """What happened in a session, its inherited part and its abandoned branches included."""

    messages: int
    user_messages: int
    assistant_messages: int
    tool_calls: int
    turns: int
    duration: timedelta
    """From the first to the last activity."""
    first_at: datetime | None
    last_at: datetime | None
    busy: timedelta = timedelta(0)
    """How long messages took: the sum of all `duration_ms`."""

    @property
    def duration_text(self) -> str:
        """The duration for people: `42s`, `5m 12s`, `3h 7m`."""
        return lasting(self.duration)


def lasting(duration: timedelta) -> str:
    """A duration for people."""
    minutes, seconds = divmod(int(duration.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {seconds}s" if minutes else f"{seconds}s"


_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)
"""Corrupt files report longer durations."""


def stats_of(state: State) -> Stats:
    """The statistics of a state."""
    counts = state.counts.plus(state.inherited.counts)
    first, last = state.inherited.first_at or state.first_at, state.last_at
    return Stats(
        sum(counts.messages.values()),
        counts.messages.get("user", 0),
        counts.messages.get("assistant", 0),
        counts.tool_calls,
        counts.turns,
        last - first if first is not None and last is not None else timedelta(0),
        first,
        last,
        timedelta(milliseconds=min(counts.busy_ms, _LONGEST_MS)),
    )


class Compacted(Struct, frozen=True):
    """A compaction of the conversation, and what it did."""

    entry: Compaction
    removed: int
    """How many messages the model no longer sees because of it."""
    summary: str
    is_cancelled: bool
    """Whether it was cancelled since."""
    count: int = 0
    """The number of the compaction, from 1; the agent's own number if it has one."""


def compactions_of(path: list[AnyEntry]) -> list[Compacted]:
    """The compactions on a path (newest first), oldest first."""
    cancelled = {node.compaction for node in path if isinstance(node, Uncompact)}
    compactions: list[Compacted] = []
    seen: list[int] = []
    for node in reversed(path):
        if isinstance(node, Message) and node.role != "system":
            seen.append(node.seq)
        elif isinstance(node, Compaction):
            kept = [seq for seq in seen if node.keep and seq >= node.keep]
            summary = "\n\n".join(text_of(item.blocks) for item in node.replacement if isinstance(item, Message))
            reported = fields(node.meta) if node.origin is not None else {}
            removed = len(seen) - len(kept) or token_count(reported, "removed")
            number = token_count(reported, "count") or (compactions[-1].count if compactions else 0) + 1
            is_cancelled = node.seq in cancelled
            compactions.append(
                Compacted(node, removed, summary or str(reported.get("summary") or ""), is_cancelled, number)
            )
            if node.seq not in cancelled:
                seen = kept
    return compactions
