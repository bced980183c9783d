"""The note that an end of a turn has no checkpoint, which readers of the log must not miss when looking for changes."""

from __future__ import annotations

from typing import Any, cast

from turnlog.log.entry import AnyEntry, Note, Turn

_KEY = "no_checkpoint"


def no_checkpoint(what: str, reason: str, turn: Turn) -> Note:
    """A note for people (`what` and the reason) that programs find by its data."""
    return Note(text=f"{what}: {reason}", data={_KEY: reason}, turn=turn.turn)


def reason_of(entry: AnyEntry) -> str | None:
    """The reason why there is no checkpoint; None if the entry is no such note."""
    data: Any = entry.data if isinstance(entry, Note) else None
    return str(cast("dict[str, Any]", data)[_KEY]) if isinstance(data, dict) and _KEY in data else None
