"""What can be asked of any log: answered by reading it, or by the log itself where it has a quicker way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from turnlog.log.entry import AnyEntry, Entry
from turnlog.store import Log


@runtime_checkable
class Indexed(Protocol):
    """A log that knows where an id is."""

    def find(self, entry_id: str) -> AnyEntry | None:
        """The entry with that id."""
        ...


@runtime_checkable
class Stamping(Protocol):
    """A log that knows whether it is still the same."""

    def stamp(self) -> object:
        """Another value whenever the log is another."""
        ...


@runtime_checkable
class Telling(Protocol):
    """A log that hears of news."""

    def listen(self, tell: Callable[[], None]) -> Callable[[], None]:
        """Have `tell` called, on any thread, when there may be new entries, until what this returns is called.

        Who is told may be told for nothing, and now and then not at all.
        """
        ...


def find(log: Log, entry_id: str) -> AnyEntry | None:
    """The entry with that id."""
    if isinstance(log, Indexed):
        return log.find(entry_id)
    return next((item for item in log.read(reverse=True) if isinstance(item, Entry) and item.id == entry_id), None)


def stamp(log: Log) -> object | None:
    """Another value whenever the log is another; None if that cannot be told without reading it."""
    return log.stamp() if isinstance(log, Stamping) else None


def listen(log: Log, tell: Callable[[], None]) -> Callable[[], None] | None:
    """See `Telling`; None if nobody can tell."""
    return log.listen(tell) if isinstance(log, Telling) else None
