"""Where the file of an index is, and whether its disk has room for it."""

from __future__ import annotations

import os
from contextlib import suppress

from turnlog.machine.environment import usable_cache
from turnlog.machine.location import key_of

OLD = "catalog.sqlite"
"""The name of the file when it lay in the home."""


def index_path(location: str, *, agents: bool) -> str | None:
    """The path of the index of a home: in a cache folder that only this user can read; None if there is none.

    An index with other agents' sessions and one without are two files: each has only what it is for.
    """
    folder = usable_cache()
    if folder is None:
        return None
    return os.path.join(folder, f"{key_of(location)}{'' if agents else '-own'}.sqlite")


def has_room(path: str, size_bytes: int) -> bool:
    """Whether the disk may have room for the index of `size_bytes`: it takes about half of that."""
    try:
        volume = os.statvfs(os.path.dirname(path))
    except OSError:
        return False
    return volume.f_bavail * volume.f_frsize > size_bytes


def remove_old(folder: str) -> None:
    """Delete the index that earlier versions kept in the home, if permitted."""
    path = os.path.join(folder, OLD)
    if not os.path.lexists(path):
        return
    for name in (f"{OLD}-wal", f"{OLD}-shm", f"{OLD}-journal", "catalog.lock", OLD):
        with suppress(OSError):  # `doctor` names what is left
            os.unlink(os.path.join(folder, name))
