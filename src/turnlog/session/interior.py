"""What a home is made of: for the rooms of this package, which ask it with `interior(home)`, and for nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from turnlog.errors import Invalid

if TYPE_CHECKING:
    from turnlog.store import Clock, Store
    from turnlog.thread.creator import Creator
    from turnlog.thread.made import CreatedHere
    from turnlog.thread.reader import SessionReader
    from turnlog.thread.settings import Settings


class Interior:
    """Where a home keeps its sessions, how, and which of them are open."""

    def __init__(self, store: Store, clock: Clock | None, settings: Settings, made: CreatedHere) -> None:
        self._store = store
        self.clock = clock
        self.settings = settings
        self.made = made
        self.sessions: WeakSet[SessionReader] = WeakSet()
        self._is_closed = self._is_settled = False

    @property
    def store(self) -> Store:
        """What keeps its logs and blobs; `Invalid` once the home is closed."""
        if self._is_closed:
            raise Invalid("this home is closed", hint="open it again with turnlog.open")
        return self._store

    @property
    def backend(self) -> str:
        """The kind of store."""
        return self._store.backend

    @property
    def creator(self) -> Creator:
        """What makes its sessions."""
        from turnlog.thread.creator import Creator  # readers create nothing

        return Creator(self.store, self.made, self.clock)

    def finish_erasing(self, *, again: bool = False) -> None:
        """Somebody may have died who was erasing: what is left to do is done before anything is written."""
        from turnlog.store.capability import EraseEntries, ability

        if again or not self._is_settled:
            self._is_settled = True
            if (eraser := ability(self.store, EraseEntries)) is not None and eraser.unsettled():
                from turnlog.thread.removal.erasing import settle

                settle(self.store)

    def close(self) -> None:
        """Close its sessions, then its store."""
        for one in list(self.sessions):
            one.close()
        self._is_closed = True
        self._store.close()


class Housed(Protocol):
    """A home."""

    _interior: Interior


def interior(home: Housed) -> Interior:
    """What a home is made of."""
    return home._interior  # pyright: ignore[reportPrivateUsage]
