"""Blocks of other agents that we have no word for, kept whole; pictures by their URL."""

from __future__ import annotations

from typing import Any

from turnlog.formats._shared.json import decoded, from_base64, is_deep
from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.value import fields
from turnlog.log.block import BLOCKS, File, Image, UnknownBlock

_INNER = "block"


def unknown(agent: str, raw: Any) -> UnknownBlock:
    """A block of another agent's that we have no word for, kept whole.

    Where it is called like one of ours, or is no object at all, it lies inside one that is called after the agent: the
    log would take it for one of ours. Of what is nested deeper than the log can hold, only its name is kept.
    """
    kind = fields(raw).get("type")
    if is_deep(raw):
        raw = {"type": kind, "left_out": "nested too deep"} if isinstance(kind, str) else "nested too deep"
    if not isinstance(kind, str) or kind in BLOCKS:
        raw = {"type": f"{agent}.{kind if isinstance(kind, str) else 'block'}", _INNER: raw}
        kind = str(raw["type"])
    return UnknownBlock(kind=kind, json=compact(raw).decode())


def linked(make: type[Image] | type[File], url: str) -> Image | File | None:
    """A picture or a file by its URL, or by its bytes if that holds them; None where those are no base64."""
    head, comma, text = url.partition(",")
    if not head.startswith("data:") or not comma:
        return make(url=url)
    data = from_base64(text)
    return make(media_type=head[5:].partition(";")[0] or None, data=data) if data is not None else None


def original(agent: str, block: UnknownBlock) -> Any:
    """The block of another agent's that was kept whole; None for what is none."""
    raw = decoded(block.json.encode())
    return fields(raw)[_INNER] if block.kind.startswith(f"{agent}.") and _INNER in fields(raw) else raw
