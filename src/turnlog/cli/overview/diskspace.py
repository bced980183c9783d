"""The disk space that a home takes, and how much is left, in a line each."""

from __future__ import annotations

from turnlog.reader.agents.blobspace import blob_space
from turnlog.view.number import size


def space_lines(location: str | None) -> list[str]:
    """Return what there is to say of the space of a home: what it takes, and whether too little is left."""
    return [line for line in (blob_use(location), space_warning(location)) if line]


def blob_use(location: str | None) -> str:
    """Return what checkpoints and long texts take. Empty for a home that is no folder, and where there are none."""
    space = blob_space(location)
    if space is None or not space[0]:
        return ""
    used, there = space
    return f"Checkpoints take {size(used)} of at most {size(there.limit_bytes)}"


def space_warning(location: str | None) -> str:
    """Return what follows from too little space; empty if there is enough."""
    space = blob_space(location)
    if space is None or not space[1].is_short:
        return ""
    free = size(space[1].free_bytes or 0)
    return f"only {free} are free: no checkpoint is taken by itself before there are 2 GB"
