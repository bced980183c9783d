"""Which sessions a list shows."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from turnlog.catalog.index.conditions import Condition, either
from turnlog.log.ids import MARKS
from turnlog.machine.folder import workspace_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.catalog.ask.query import Filter, Query
    from turnlog.catalog.index.index import Index

LEFT_OUT = {
    "copied": Condition("not", "sessions.is_copied"),
    "hidden": Condition("not", "sessions.is_hidden"),
    "subagent": Condition("unknown", "sessions.parent"),
    "archived": Condition("not", "sessions.is_archived"),
}
"""Sessions are hidden unless they meet these conditions or a filter asks for them."""

IN_TRASH = Condition("is", "sessions.is_deleted").and_(Condition("is", "sessions.is_ours"))
"""A deleted session of another agent is gone: only its spending is known."""
NOT_MARKS = Condition("<>", "sessions.native", MARKS)
"""Excludes the session that holds marks of other agents' sessions: its content is shown with those."""
CONVERSATION = Condition("is", "sessions.is_conversation")


def sessions_shown(
    index: Index, query: str | Query, workspace: str | os.PathLike[str] | None, *, everything: bool, deleted: bool
) -> Condition:
    """The sessions that match a query, without those that are hidden unless asked for."""
    condition = IN_TRASH if deleted else Condition("not", "sessions.is_deleted").and_(NOT_MARKS)
    if query:
        from turnlog.catalog.ask.lookup import session_condition
        from turnlog.catalog.ask.query import parse

        sides = parse(query).sides  # each side of an OR shows what it would show alone
        conditions = [
            session_condition(index, side, now_ms=now_ms()).and_(_without(side.filters, everything)) for side in sides
        ]
        condition = condition.and_(either(*conditions)) if all(one.op for one in conditions) else condition
    else:
        condition = condition.and_(_without((), everything))
    if workspace is not None:
        condition = condition.and_(Condition("=", "sessions.workspace", workspace_path(workspace)))
    return condition


def _without(filters: Iterable[Filter], everything: bool) -> Condition:
    """Exclude what is hidden unless asked for, except what these filters ask for."""
    named = {value for clause in filters if clause.name == "is" for value in clause.values}
    condition = Condition()
    for kind, rest in LEFT_OUT.items():
        if not everything and kind not in named:
            condition = condition.and_(rest)
    return condition


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
