"""Keeps sessions open that somebody views: each is opened once, for all who ask, and let go after a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from turnlog.catalog.waiter import PatientLock
from turnlog.errors import NotFound, TurnlogError
from turnlog.reader.viewing.viewedsession import ViewedSession

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.log.entry import Note
    from turnlog.session.home import Home

_IDLE_S = 300.0
_MOST = 8
"""The maximum number of sessions that are kept open while nobody uses them."""
_UNUSED_S = 5.0
"""After this long a session counts as unused: whoever follows it asks for it every half second."""


def error_line(error: Exception) -> str:
    """What went wrong and what to do about it, on one line."""
    if isinstance(error, TurnlogError):
        return error.message + (f" ({error.hint})" if error.hint else "")
    return str((error.strerror if isinstance(error, OSError) else None) or error)


class Desk:
    """Where sessions lie open. Safe to use from many threads."""

    def __init__(
        self, home: Home, catalog: Catalog, location: str | None = None, *, brings_in: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.home, self.catalog = home, catalog
        self._location = location
        self._brings_in = brings_in
        """Whether what an agent with hooks said is taken into the home, as `turnlog show` does."""
        self._clock = clock
        self._mutex = threading.Lock()
        self._open: dict[str, ViewedSession] = {}
        self._opening: dict[str, PatientLock] = {}

    def open(self, card: Card) -> ViewedSession:
        """A session, as it was when it was last looked at; opened if need be. Two that ask at once wait for one."""
        with self._mutex:
            viewed = self._open.get(card.name)
            if viewed is not None and not viewed.problem:
                viewed.used_at, viewed.card = self._clock(), card
                return viewed
            opening = self._opening.setdefault(card.name, PatientLock())
        replaced = None
        with opening:
            with self._mutex:
                viewed = self._open.get(card.name)
            if viewed is None or viewed.problem:
                try:
                    opened = ViewedSession(
                        card, self.home, self.catalog, self._location,
                        brings_in=self._brings_in, used_at=self._clock(),
                    )  # fmt: skip
                    with self._mutex:
                        replaced = self._open.get(card.name)
                        self._open[card.name] = viewed = opened
                finally:
                    with self._mutex:
                        self._opening.pop(card.name, None)
            viewed.used_at = self._clock()
        if replaced is not None:
            with replaced.mutex:
                replaced.close()
        self.tidy()
        return viewed

    def card(self, name: str) -> Card:
        """The session of that name, also if it was made a moment ago."""
        try:
            return self.catalog.find(name)
        except NotFound:
            self.catalog.sync()
            return self.catalog.find(name)

    def notes_on(self, card: Card) -> list[Note]:
        """The notes on another agent's session. In one of ours they stand where they were written."""
        from turnlog.reader.markable import ForeignMarkable

        return [] if card.is_ours else ForeignMarkable(self.home, card).notes

    def tidy(self, *, idle_s: float = _IDLE_S) -> None:
        """Let go of what nobody looked at for a while, and of the oldest where there are too many."""
        with self._mutex:
            names = sorted(self._open, key=lambda name: self._open[name].used_at, reverse=True)
            now = self._clock()
            gone = [
                name
                for number, name in enumerate(names)
                if now - self._open[name].used_at > (idle_s if number < _MOST else min(idle_s, _UNUSED_S))
            ]
            leaving = [self._open.pop(name) for name in gone]
        for one in leaving:
            with one.mutex:
                one.close()

    def close(self) -> None:
        """Let go of everything."""
        with self._mutex:
            leaving, self._open = list(self._open.values()), {}
        for one in leaving:
            one.close()
