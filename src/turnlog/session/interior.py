"""The internals of a home, for the rooms of this package: `interior(home)` returns them."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from turnlog.errors import Invalid
from turnlog.machine.liveobjects import LiveObjects

if TYPE_CHECKING:
    from turnlog.store import Clock, Store
    from turnlog.thread.home.createdhere import CreatedHere
    from turnlog.thread.home.creator import Creator
    from turnlog.thread.home.settings import Settings
    from turnlog.thread.reader import SessionReader


class Interior:
    """The store of a home, its options, and its open sessions."""

    def __init__(self, store: Store, clock: Clock | None, settings: Settings, created_here: CreatedHere) -> None:
        self._store = store
        self.clock = clock
        self.settings = settings
        self.created_here = created_here
        self.sessions: LiveObjects[SessionReader] = LiveObjects()
        self._is_closed = self._is_settled = False

    @property
    def store(self) -> Store:
        """The store of logs and blobs. Raises `Invalid` once the home is closed."""
        if self._is_closed:
            raise Invalid("this home is closed", hint="open it again with turnlog.open")
        return self._store

    @property
    def backend(self) -> str:
        """The kind of store."""
        return self._store.backend

    def now(self) -> datetime:
        """The time on the clock of this home."""
        return datetime.now(UTC) if self.clock is None else datetime.fromtimestamp(self.clock() / 1000, UTC)

    @property
    def creator(self) -> Creator:
        """The creator of its sessions."""
        from turnlog.thread.home.creator import Creator  # readers create nothing

        return Creator(self.store, self.created_here, self.clock)

    def finish_erasing(self, *, again: bool = False) -> None:
        """Finish erasures that a crashed process left unfinished. Called before entries are appended."""
        from turnlog.store.capability import EraseEntries, ability

        if again or not self._is_settled:
            if (eraser := ability(self.store, EraseEntries)) is not None and eraser.unsettled():
                from turnlog.thread.removal.erasing import settle

                settle(self.store)
            self._is_settled = True

    def close(self) -> None:
        """Close its sessions, then its store."""
        with ExitStack() as closing:  # whatever cannot be closed, the others are
            closing.callback(self._store.close)
            for session in self.sessions:
                closing.callback(session.close)
            self._is_closed = True


class HasInterior(Protocol):
    """An object with the internals of a home."""

    _interior: Interior


def interior(home: HasInterior) -> Interior:
    """The internals of a home."""
    return home._interior  # pyright: ignore[reportPrivateUsage]
