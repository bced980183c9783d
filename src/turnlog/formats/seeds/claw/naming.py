"""The names of claw's files: sessions, and what rotation, `/clear` and interrupted saves leave beside them."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from turnlog.formats._shared.rust import fnv1a64

PARTITION = re.compile(r"[0-9a-f]{16}")
_ROTATED = re.compile(r"(?P<stem>.+)\.rot-(?P<at>[0-9]{1,18})\.jsonl", re.DOTALL)
_CLEARED = re.compile(r"(?P<stem>.+)\.jsonl\.before-clear-(?P<at>[0-9]{1,18})\.bak", re.DOTALL)
_STAMP = re.compile(r"session-([0-9]{9,15})(?:-[0-9]+)?")
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


class ClawCopy(Struct, frozen=True):
    """A file that is a former state of a session."""

    original: str
    """The name of the session's own file."""
    at_ms: int
    tag: str


def copy_of(name: str) -> ClawCopy | None:
    """What a file is a copy of, if its name says that it is one."""
    for pattern, word in ((_ROTATED, "rot"), (_CLEARED, "before-clear")):
        found = pattern.fullmatch(name)
        if found:
            return ClawCopy(f"{found['stem']}.jsonl", int(found["at"]), f"{word}-{found['at']}")
    return None


def is_session_name(name: str) -> bool:
    """Whether claw could mean a session by that name: no copy, no temporary file."""
    return name.endswith((".jsonl", ".json")) and not name.startswith(".") and copy_of(name) is None


def stem_of(name: str) -> str:
    """The name without what the kind of file adds to it: what claw looks up."""
    copy = copy_of(name)
    name = copy.original if copy is not None else name
    for ending in (".jsonl", ".json"):
        if name.endswith(ending):
            return name[: -len(ending)]
    return name


def workspace_of(path: str) -> str | None:
    """The folder above `.claw/sessions` (formerly `.claude/sessions`) that a session lies in.

    One of the folders that are named for a workspace may lie in the home of a person, and then is named for another.
    """
    folder = os.path.dirname(os.path.abspath(path))
    named = os.path.basename(folder) if PARTITION.fullmatch(os.path.basename(folder)) else None
    outer, name = os.path.split(os.path.dirname(folder) if named else folder)
    if name != "sessions" or os.path.basename(outer) not in (".claw", ".claude"):
        return None
    workspace = os.path.dirname(outer)
    return workspace if named in (None, partition_of(workspace)) else None


def partition_of(workspace: str) -> str:
    """The folder for the sessions of a workspace."""
    return f"{fnv1a64(workspace.encode('utf-8', 'surrogateescape')):016x}"


def stamp_of(id: str) -> int | None:
    """The milliseconds in an id; the oldest ones have seconds."""
    found = _STAMP.fullmatch(id)
    if found is None:
        return None
    number = int(found[1])
    return number * 1000 if len(found[1]) < 12 else number


def file_name(id: str) -> str:
    """The file for an id: its own name, or for an id that cannot be one a name that no other id gets."""
    if _SAFE.fullmatch(id) and copy_of(f"{id}.jsonl") is None:
        return f"{id}.jsonl"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", id)[:100]
    return f"session_{plain}-{fnv1a64(id.encode('utf-8', 'surrogatepass')):016x}.jsonl"
