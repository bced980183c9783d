"""Times as viewers show them; empty where none is known."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime


def minute(at: datetime | None) -> str:
    """A time to the minute, in its own time zone."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M")


def second(at: datetime | None) -> str:
    """A time to the second, in its own time zone."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def local_minute(at: datetime | None) -> str:
    """A time to the minute, in the time zone of this machine."""
    return minute(None if at is None else at.astimezone())


def local_second(at: datetime | None) -> str:
    """A time to the second, in the time zone of this machine."""
    return second(None if at is None else at.astimezone())
