"""How much room the blobs of a home take, and how much they may take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of

if TYPE_CHECKING:
    from turnlog.machine.space import Space


def blob_space(location: str | None) -> tuple[int, Space] | None:
    """What the blobs of a home take, and may take; None for a home that is no folder."""
    from turnlog.machine.space import space

    folder = folder_of(location or default_home())
    if folder is None:
        return None
    try:
        with os.scandir(f"{folder}/blobs") as entries:
            used = sum(entry.stat().st_size for entry in entries)
    except OSError:
        used = 0  # there are none yet
    return used, space(folder)
