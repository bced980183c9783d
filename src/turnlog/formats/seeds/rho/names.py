"""Names that rho gives to folders, files and sessions."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid5

from turnlog.formats._shared.rust import fnv1a64

NAMESPACE = UUID("5e0a7c1e-93d4-4b7a-8f60-7e1d5c2b9a34")
"""Of the ids that we choose for rho: the same entry always gets the same one."""
MAX_NAME = 255
_UNIT = re.compile(r"[0-9]{1,20}_([A-Za-z0-9][A-Za-z0-9.-]{0,127})")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}")


def workspace_key(cwd: str) -> str:
    """The folder for the sessions of a workspace. For a deep one rho's own is longer than a file system takes."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in cwd)
    tail = f"-{fnv1a64(cwd.encode('utf-8', 'replace')):016x}"
    return plain[: MAX_NAME - len(tail)] + tail


def is_cut(cwd: Any) -> bool:
    """Whether the folder's name had to be shortened, so that rho finds the session by its id only."""
    return isinstance(cwd, str) and len(cwd) > MAX_NAME - 17


def chosen_id(name: str) -> str:
    """The id that something of ours has in rho."""
    return str(uuid5(NAMESPACE, name))


def is_safe(id: Any) -> bool:
    """Whether an id can be part of a file name as it is."""
    return isinstance(id, str) and _ID.fullmatch(id) is not None


def id_in(unit: str) -> str | None:
    """The session's id in the name of its file or folder."""
    found = _UNIT.fullmatch(unit)
    return found[1] if found is not None else None


def unit_name(kept: Any, seconds: str, session: str) -> str:
    """The name of a session's file or folder: the one it had, or the one rho would give it."""
    if isinstance(kept, str) and id_in(kept) == session:
        return kept
    return f"{seconds if seconds.isascii() and seconds.isdigit() and len(seconds) <= 20 else 0}_{session}"
