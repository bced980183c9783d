"""Where a session was read from: what the first line of its log says, and a fact for what was not known then."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, to_builtins

from turnlog.interop.copied import Copied, copied_in
from turnlog.interop.value import fields
from turnlog.log.entry import Set, Start
from turnlog.thread.history import History
from turnlog.thread.reader import SessionReader

SOURCE_HEADER = "source_header"
"""The fact with the `SourceHeader` of a session."""


class Origin(Struct, frozen=True):
    """The session of another agent that a session was read from. Empty if it was made here."""

    agent: str | None = None
    id: str | None = None
    """Its id in that agent."""
    identity: str | None = None
    """What distinguishes it from another session with the same id; the id itself, if nothing else does."""
    path: str | None = None
    """Its file at the time of the first import; None if that was not known."""
    header: Any = None
    """What else its header says, for the writer of the same format."""
    copied: Copied | None = None
    """The sessions that it is a copy of."""

    def to_json(self) -> dict[str, Any]:
        """The origin as the first line of a log has it."""
        values = {"agent": self.agent, "id": self.id, "identity": self.identity, "path": self.path}
        values |= {} if self.header is None else {"header": self.header}
        return values if self.copied is None else {**values, "copied": to_builtins(self.copied)}


class SourceHeader(Struct, frozen=True):
    """What the header of a source says, for a session that a hook created before the source could be read."""

    origin: Any = None
    """See `Origin.header`."""
    created: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """The value of the fact."""
        return {"origin": self.origin, "created": None if self.created is None else self.created.isoformat()}


def decode_origin(start: Start) -> Origin:
    """The origin in a first line. A field of the wrong type counts as missing: anybody may have written it."""
    values = fields(start.origin)
    return Origin(
        agent=_text(values.get("agent")),
        id=_text(values.get("id")),
        identity=_text(values.get("identity")),
        path=_text(values.get("path")),
        header=values.get("header"),
        copied=copied_in(values, "copied"),
    )


def start_of(history: History) -> Start | None:
    """The first line of a log; None if it is damaged."""
    first = next(iter(history.log.read()), None)
    return first if isinstance(first, Start) else None


def origin_of(history: History) -> Origin:
    """The origin of a session; an empty one if its first line is damaged."""
    start = start_of(history)
    return Origin() if start is None else decode_origin(start)


def source_header_of(session: SessionReader) -> SourceHeader:
    """The newest source header of a session, whatever was rewound since. What is invalid in it counts as missing."""
    facts = (entry for entry in session.entries(kind="set", reverse=True) if isinstance(entry, Set))
    values = fields(next((entry.value for entry in facts if entry.key == SOURCE_HEADER), None))
    return SourceHeader(values.get("origin"), _aware(values.get("created")))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _aware(value: Any) -> datetime | None:
    """The time in a text; None for anything else."""
    try:
        at = datetime.fromisoformat(value)
        return at.astimezone(UTC) if at.tzinfo is not None else None
    except (TypeError, ValueError, OverflowError):
        return None
