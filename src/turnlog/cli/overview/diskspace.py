"""The disk space that a home takes, and how much is left, in a line each."""

from __future__ import annotations

from turnlog.reader.agents.blobspace import BlobUse, blob_use
from turnlog.view.number import size


def space_lines(location: str | None) -> list[str]:
    """Return the lines about the space of a home: what it takes, and whether too little is left."""
    use = blob_use(location)
    if use is None:
        return []
    lines = [_use(use)] if use.used_bytes else []
    if use.space.is_short:
        free = size(use.space.free_bytes or 0)
        lines.append(f"only {free} are free: no checkpoint is taken by itself before there are 2 GB")
    return lines


def use_line(location: str | None) -> str:
    """Return what checkpoints and long texts take. Empty for a home that is no folder, and where there are none."""
    use = blob_use(location)
    return "" if use is None or not use.used_bytes else _use(use)


def _use(use: BlobUse) -> str:
    return f"Checkpoints take {size(use.used_bytes)} of at most {size(use.space.limit_bytes)}"
