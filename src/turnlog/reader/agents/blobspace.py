"""How much room the blobs of a home take, and how much they may take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.layout import BLOBS
from turnlog.log.startup import NamedTuple
from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of

if TYPE_CHECKING:
    from turnlog.machine.space import Space


class BlobUse(NamedTuple):
    """What the blobs of a home take, and the space that they may take."""

    used_bytes: int
    space: Space


def blob_use(location: str | None) -> BlobUse | None:
    """What the blobs of a home take, and may take; None for a home that is no folder."""
    from turnlog.machine.space import space

    folder = folder_of(location or default_home())
    if folder is None:
        return None
    used = 0
    try:
        with os.scandir(os.path.join(folder, BLOBS)) as entries:
            for entry in entries:
                used += _size(entry)
    except OSError:
        return BlobUse(used, space(folder))  # there are none yet
    return BlobUse(used, space(folder))


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0  # a collection has just removed it
