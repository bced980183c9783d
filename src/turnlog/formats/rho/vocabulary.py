"""Which words the first rho knows, and since when a rho knows the others."""

from __future__ import annotations

from typing import Any, cast

from turnlog.formats._shared.json import decode
from turnlog.formats.rho.message import Json, origin_of
from turnlog.log.block import Image, Thinking, UnknownBlock
from turnlog.log.entry import Entry, Message

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
    try:
        record = decode(line)
    except ValueError:
        return ""
    if not isinstance(record, dict):
        return ""
    found = cast("Json", record)
    known = _RECORDS.get(str(found.get("type")), "")
    said = found.get("messages", [found.get("message")])
    shown = _SHOWN if "display_message" in found else ""
    return max(known, shown, *map(_of_message, cast("list[Any]", said if isinstance(said, list) else [])), "")


def _of_message(message: Any) -> str:
    inner = cast("Json", message) if isinstance(message, dict) else {}
    if "EnrichedAssistant" in inner or "AbortedAssistant" in inner:
        return _ANSWERS
    blocks: Any = inner.get("User", inner.get("Assistant"))
    has_picture = isinstance(blocks, list) and any(
        "Image" in b for b in cast("list[Any]", blocks) if isinstance(b, dict)
    )
    return _PICTURES if has_picture else ""
