"""Which sessions a list shows."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from turnlog.catalog.index.conditions import Condition
from turnlog.layout import MARKS
from turnlog.machine.folder import workspace_path

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index

LEFT_OUT = {
    "copied": Condition("not", "sessions.is_copied"),
    "hidden": Condition("not", "sessions.is_hidden"),
    "subagent": Condition("unknown", "sessions.parent"),
    "archived": Condition("not", "sessions.is_archived"),
}
"""What is only shown where it is asked for: all but these."""

IN_TRASH = Condition("is", "sessions.is_deleted").and_(Condition("is", "sessions.is_ours"))
"""Another agent's that is deleted is gone: only what it spent is known."""
NOT_MARKS = Condition("<>", "sessions.native", MARKS)
"""The one session that no list shows: what it says is shown with others."""
CONVERSATION = Condition("is", "sessions.is_conversation")


def sessions_shown(
    index: Index, query: str, workspace: str | os.PathLike[str] | None, *, everything: bool, deleted: bool
) -> Condition:
    """Those that a query means, without what nobody asked for."""
    shown = IN_TRASH if deleted else Condition("not", "sessions.is_deleted").and_(NOT_MARKS)
    left_out = LEFT_OUT
    if query:
        from turnlog.catalog.ask.query import parse
        from turnlog.catalog.ask.search import asks, sessions_meant

        asked = parse(query)
        shown = shown.and_(sessions_meant(index, asked, now_ms=now_ms()))
        left_out = {kind: rest for kind, rest in left_out.items() if not asks(asked, kind)}
    if not everything:
        for rest in left_out.values():
            shown = shown.and_(rest)
    if workspace is not None:
        shown = shown.and_(Condition("=", "sessions.workspace", workspace_path(workspace)))
    return shown


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
