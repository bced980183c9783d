"""The disk space that a home takes, and how much is left, in a line each."""

from __future__ import annotations

from turnlog.reader.agents.blobspace import blob_space
from turnlog.view.number import size


def space_lines(location: str | None) -> list[str]:
    """Return the lines about the space of a home: what it takes, and whether too little is left."""
    found = blob_space(location)
    if found is None:
        return []
    used, space = found
    lines = [_use(used, space.limit_bytes)] if used else []
    if space.is_short:
        free = size(space.free_bytes or 0)
        lines.append(f"only {free} are free: no checkpoint is taken by itself before there are 2 GB")
    return lines


def blob_use(location: str | None) -> str:
    """Return what checkpoints and long texts take. Empty for a home that is no folder, and where there are none."""
    found = blob_space(location)
    return "" if found is None or not found[0] else _use(found[0], found[1].limit_bytes)


def _use(used_bytes: int, limit_bytes: int) -> str:
    return f"Checkpoints take {size(used_bytes)} of at most {size(limit_bytes)}"
