"""Follows sessions for open pages: one thread for each session, shared by its listeners, stopped with the last one."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnlog.errors import TurnlogError
from turnlog.reader.viewing.desk import error_line

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.reader.viewing.desk import Desk
    from turnlog.reader.viewing.viewedsession import ViewedSession

_PAUSE_S = 0.5
_LIST_S = 2.0
_BEAT_S = 15.0
LIST = ""
"""The name under which the list of sessions is followed."""


def version_in(word: str) -> int | None:
    """The version that a page says it has; None if it says none."""
    return int(word) if word.isdecimal() and len(word) < 20 else None


class FollowedState(NamedTuple):
    """A snapshot: its version, the number of pieces, the state of the session, and the error that ended it."""

    version: int = 0
    total: int = 0
    state: str = ""
    problem: str = ""


class Follower:
    """Polls something on a thread, as long as it has listeners; a kind of it says what in `_follow`."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._streams, self._name = streams, name
        self.listeners: set[asyncio.Event] = set()
        self.seen = FollowedState()
        self.is_over = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self.is_over = True
        self._wake.set()

    def changed_since(self, version: int) -> int:
        """The first piece that is another than it was then; 0 if there are none, or nobody knows."""
        return 0

    def _follow(self) -> None:
        """Look, publish and wait until it is over."""
        raise NotImplementedError

    def _run(self) -> None:
        try:
            self._follow()
        except (TurnlogError, OSError, sqlite3.Error) as error:
            self._publish(FollowedState(self.seen.version + 1, 0, "ended", error_line(error)))
        finally:
            self.is_over = True
            self._notify()

    def _publish(self, seen: FollowedState) -> None:
        if seen != self.seen:
            self.seen = seen
            self._notify()

    def _notify(self) -> None:
        loop = self._streams.loop
        if loop is not None and not loop.is_closed():
            for event in list(self.listeners):
                loop.call_soon_threadsafe(event.set)


class SessionFollower(Follower):
    """Polls one session."""

    _looked: ViewedSession | None = None

    def changed_since(self, version: int) -> int:
        """See `Follower`."""
        return 0 if self._looked is None else self._looked.changed_since(version)

    def _follow(self) -> None:
        desk = self._streams.desk
        card = desk.catalog.find(self._name)
        ticks = 0
        while not self.is_over:
            self._publish(self._look(desk.open(card), card))
            self._wake.wait(_PAUSE_S)
            ticks += 1
            if ticks % 4 == 0:
                card = desk.catalog.find(card.name)

    def _look(self, viewed: ViewedSession, card: Card) -> FollowedState:
        with viewed.mutex:
            viewed.refresh()
            viewed.card = card
            self._looked = viewed
            return FollowedState(viewed.version, len(viewed.pieces), card.state)


class ListFollower(Follower):
    """Polls the list of sessions."""

    def _follow(self) -> None:
        catalog = self._streams.desk.catalog
        version, previous = time.time_ns(), None
        while not self.is_over:
            rows = catalog.lines()
            listing = ([(row.name, row.updated_ms, row.state, row.title) for row in rows], catalog.standing())
            version += previous is not None and listing != previous
            previous = listing
            self._publish(FollowedState(version, len(rows)))
            self._wake.wait(_LIST_S)


class Streams:
    """The running followers. Used on the event loop only."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.loop: asyncio.AbstractEventLoop | None = None
        self._followers: dict[str, Follower] = {}
        self._is_over = False

    def stop(self) -> None:
        """End all followers and all their streams."""
        self._is_over = True
        for follower in self._followers.values():
            follower.stop()
            for event in follower.listeners:
                event.set()

    async def listen(self, name: str, since: int | None) -> AsyncIterator[str]:
        """Changes as server-sent events since a version; a comment now and then, so that the other end knows."""
        follower = self._followers.get(name)
        if follower is None or follower.is_over:
            kind = ListFollower if name == LIST else SessionFollower
            follower = self._followers[name] = kind(self, name)
            follower.start()
        event = asyncio.Event()
        follower.listeners.add(event)
        state = ""
        try:
            yield ": here\n\n"
            while not self._is_over:
                event.clear()
                seen = follower.seen
                since = seen.version if since is None and seen.version else since
                if seen.version and (seen.version != since or seen.state != state):
                    event_data = {**seen._asdict(), "first": follower.changed_since(since or 0)}
                    is_news = seen.version != since or bool(state)
                    since, state = seen.version, seen.state
                    if is_news:
                        yield f"id: {seen.version}\ndata: {msgspec.json.encode(event_data).decode()}\n\n"
                if follower.is_over:
                    return
                try:
                    await asyncio.wait_for(event.wait(), _BEAT_S)
                except TimeoutError:
                    yield ": beat\n\n"
        finally:
            follower.listeners.discard(event)
            if not follower.listeners:
                follower.stop()
                if self._followers.get(name) is follower:
                    del self._followers[name]
