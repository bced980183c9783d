"""How much room blobs take, and how much there is, in a line."""

from __future__ import annotations

from turnlog.reader.hooking import room
from turnlog.view.number import size


def room_told(location: str | None) -> str:
    """What checkpoints and long texts of a home take; empty for one that is no folder, and where there is nothing."""
    space = room(location)
    if space is None or not space[0]:
        return ""
    used, there = space
    return f"Checkpoints take {size(used)} of at most {size(there.limit_bytes)}"


def room_short(location: str | None) -> str:
    """What follows from too little room; empty if there is enough."""
    space = room(location)
    if space is None or not space[1].is_short:
        return ""
    free = size(space[1].free_bytes or 0)
    return f"only {free} are free: no checkpoint is taken by itself before there are 2 GB"
