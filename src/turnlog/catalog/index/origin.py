"""The column `origin`: which session of another agent a session is, or was imported from."""

from __future__ import annotations

HOOKED = "\x1e"
"""Follows each origin of a session of ours whose turns hooks report: the original is not listed as a second session."""


def origins_of(column: str) -> list[str]:
    """The ids in a column, each as the agent, a line feed and its id. With hooks, a session may have several."""
    return column.split(HOOKED)[:-1] if is_hooked(column) else [column] if column else []


def is_hooked(column: str) -> bool:
    """Whether hooks report the turns of a session: then it counts as complete."""
    return column.endswith(HOOKED)
