"""Which session each fork continues: its parent, unless another session has the parent's id by now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.session import Home
    from turnlog.thread.report import Info


def fork_parents(home: Home, rows: Iterable[Info]) -> dict[str, str]:
    """The id of the parent of each of these sessions that is a fork."""
    firsts = {one.id: one.first for one in interior(home).store.listing()}
    forks = ((row.id, row.fork) for row in rows)
    return {id: fork.session for id, fork in forks if fork is not None and firsts.get(fork.session) == fork.base}
