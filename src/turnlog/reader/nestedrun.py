"""Agents that ran inside a `turnlog run`, and report their turns themselves."""

from __future__ import annotations

from turnlog.log.entry import Turn
from turnlog.store import Store
from turnlog.thread.history import opened
from turnlog.thread.report import info_of


def sessions_inside_turn(store: Store, workspace: str | None, turn: str) -> list[str]:
    """The sessions in a folder whose turns are parts of that turn: agents that ran inside it."""
    ids: list[str] = []
    for row in store.listing():
        info = info_of(row)
        if info.workspace != workspace or row.start is None or row.start.origin is None:
            continue
        with opened(store, store.open(row.id, read_only=True)) as history:
            if history.state.is_relayed and any(
                isinstance(entry, Turn) and entry.within == turn for entry in history.back()
            ):
                ids.append(row.id)
    return ids
