"""Which words the first rho knows, and since when a rho knows the others."""

from __future__ import annotations

from typing import Any

from turnlog.formats._shared.records import record_in
from turnlog.formats._shared.value import fields, listed
from turnlog.formats.seeds.rho.message import origin_of
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
    found = record_in(line)
    known = _RECORDS.get(str(found.get("type")), "")
    said = found.get("messages", [found.get("message")])
    shown = _SHOWN if "display_message" in found else ""
    return max(known, shown, *map(_of_message, listed(said)), "")


def _of_message(message: Any) -> str:
    inner = fields(message)
    if "EnrichedAssistant" in inner or "AbortedAssistant" in inner:
        return _ANSWERS
    blocks = listed(inner.get("User", inner.get("Assistant")))
    return _PICTURES if any("Image" in fields(block) for block in blocks) else ""
