"""Names that rho gives to folders, files and sessions, and which words the first rho knows."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID, uuid5

from turnlog.formats._shared.records import record_in
from turnlog.formats._shared.rust import fnv1a64
from turnlog.formats._shared.value import fields, listed
from turnlog.formats.seeds.rho.message import origin_of
from turnlog.log.block import Image, Thinking, UnknownBlock
from turnlog.log.codec import without_surrogates
from turnlog.log.entry import Entry, Message

NAMESPACE = UUID("5e0a7c1e-93d4-4b7a-8f60-7e1d5c2b9a34")
"""Of the ids that we choose for rho: the same entry always gets the same one."""
MAX_NAME = 255
_UNIT = re.compile(r"[0-9]{1,20}_([A-Za-z0-9][A-Za-z0-9.-]{0,127})")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}")


def workspace_key(cwd: str) -> str:
    """The folder for the sessions of a workspace. For a deep one rho's own is longer than a file system takes."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in cwd)
    tail = f"-{fnv1a64(str(without_surrogates(cwd)).encode()):016x}"
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
    match = _UNIT.fullmatch(unit)
    return match[1] if match is not None else None


def unit_name(kept: Any, seconds: str, session: str) -> str:
    """The name of a session's file or folder: the one it had, or the one rho would give it."""
    if isinstance(kept, str) and id_in(kept) == session:
        return kept
    return f"{seconds if seconds.isascii() and seconds.isdigit() and len(seconds) <= 20 else 0}_{session}"


_RECORDS = {
    "replace_history": "2026-07-08", "snapshot": "2026-07-15", "snapshot_delta": "2026-07-15",
    "upgrade": "2026-07-21", "set_leaf": "2026-07-21", "node": "2026-07-21",
}  # fmt: skip
_SHOWN, _ANSWERS, _PICTURES = "2026-07-13", "2026-07-14", "2026-06-29"


def is_newer(entry: Entry) -> bool:
    """Whether it came from rho and says what the first one would refuse."""
    origin = origin_of(entry)
    if origin is None:
        return False
    if "as" in origin or origin.get("is", "part") != "part":
        return True
    if not isinstance(entry, Message):
        return False
    return entry.display is not None or any(isinstance(b, (Image, Thinking, UnknownBlock)) for b in entry.blocks)


def opened_since(data: bytes) -> str:
    """Which rho opens a file of these lines; empty if every one does."""
    since = max((_since(line) for line in data.split(b"\n") if line), default="")
    return f"rho of {since} or newer, and in no older one" if since else ""


def _since(line: bytes) -> str:
    record = record_in(line)
    kind = _RECORDS.get(str(record.get("type")), "")
    messages = record.get("messages", [record.get("message")])
    suffix = _SHOWN if "display_message" in record else ""
    return max(kind, suffix, *map(_of_message, listed(messages)), "")


def _of_message(message: Any) -> str:
    inner = fields(message)
    if "EnrichedAssistant" in inner or "AbortedAssistant" in inner:
        return _ANSWERS
    blocks = listed(inner.get("User", inner.get("Assistant")))
    return _PICTURES if any("Image" in fields(block) for block in blocks) else ""
