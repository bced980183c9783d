"""How much room there is for what agents fill by themselves: a limit for blobs, and what has to stay free."""

from __future__ import annotations

import os

from turnlog.errors import Invalid
from turnlog.layout import SPACE_LIMIT
from turnlog.log.startup import NamedTuple
from turnlog.machine.environment import environment
from turnlog.machine.replace import read_bytes, replace_file

SPARE_BYTES = 2 * 10**9
"""With less than that free, nothing is kept by itself."""
_MOST_BYTES, _SHARE = 10 * 10**9, 0.1
_VARIABLE = "TURNLOG_LIMIT"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class Space(NamedTuple):
    """The room of one home."""

    limit_bytes: int
    """What its blobs may take."""
    free_bytes: int | None
    """Free bytes on its disk; None if unknown."""

    @property
    def is_short(self) -> bool:
        """Whether no checkpoint is to be taken by itself."""
        return self.free_bytes is not None and self.free_bytes < SPARE_BYTES


def space(folder: str | None) -> Space:
    """The room of the home in that folder, if it is one. Raises `Invalid` for a limit that is no size."""
    free = free_bytes(folder) if folder is not None else None
    chosen = environment().get(_VARIABLE) or _configured(folder)
    most = _MOST_BYTES if free is None else min(_MOST_BYTES, int(free * _SHARE))
    return Space(size_of(chosen) if chosen else most, free)


def free_bytes(folder: str) -> int | None:
    """The bytes that this user may still write on the disk of a folder, which need not exist yet."""
    while folder and not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def set_limit(folder: str, text: str) -> None:
    """Set the limit of the home in that folder."""
    path = os.path.join(folder, SPACE_LIMIT)
    size_of(text)
    replace_file(path, read_bytes(path), f"{text}\n".encode())


def size_of(text: str) -> int:
    """`500MB`, `2 GB`, `1.5G`, or a number of bytes. Raises `Invalid`."""
    import re  # hardly ever: most homes have the usual limit

    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)b?\s*", text.lower())
    if match is None:
        raise Invalid(f"{text!r:.80} is not a size", hint="500MB, 2GB, or a number of bytes")
    return int(float(match[1]) * _UNITS[match[2]])


def _configured(folder: str | None) -> str:
    return (read_bytes(os.path.join(folder, SPACE_LIMIT)) or b"").decode(errors="replace") if folder is not None else ""
