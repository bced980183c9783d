"""What follows sessions while somebody looks: one follower for each, however many look, and none when nobody does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnlog.errors import TurnlogError

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.reader.desk import Desk, LookedAt

_PAUSE_S = 0.5
_LIST_S = 2.0
_BEAT_S = 15.0
LIST = ""
"""The name of what follows the list of sessions."""


class FollowedState(NamedTuple):
    """How something is now: a number that changes with it, how many pieces there are, in which state it is."""

    version: int = 0
    total: int = 0
    state: str = ""
    problem: str = ""


class Follower:
    """Looks at one session again and again, in a thread of its own, as long as somebody listens."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._streams, self._name = streams, name
        self.listeners: set[asyncio.Event] = set()
        self.seen = FollowedState()
        self.is_over = False
        self._looked: LookedAt | None = None
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow {name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Nobody listens any more."""
        self.is_over = True
        self._wake.set()

    def changed_since(self, version: int) -> int:
        """The first piece that is another than it was then."""
        return 0 if self._looked is None else self._looked.changed_since(version)

    def _run(self) -> None:
        try:
            (self._follow_list if self._name == LIST else self._follow)()
        except TurnlogError as error:
            self._show(FollowedState(self.seen.version + 1, 0, "ended", error.message))
        finally:
            self.is_over = True
            self._tell()

    def _follow(self) -> None:
        desk = self._streams.desk
        card = desk.catalog.find(self._name)
        ticks = 0
        while not self.is_over:
            self._show(self._look(desk.open(card), card))
            self._wake.wait(_PAUSE_S)
            ticks += 1
            if ticks % 4 == 0:
                card = desk.catalog.find(card.name)

    def _look(self, looked: LookedAt, card: Card) -> FollowedState:
        with looked.mutex:
            looked.look()
            looked.card = card
            self._looked = looked
            return FollowedState(looked.version, len(looked.pieces), card.state)

    def _follow_list(self) -> None:
        catalog = self._streams.desk.catalog
        version, before = time.time_ns(), None
        while not self.is_over:
            rows = catalog.lines()
            now = ([(row.name, row.updated_ms, row.state, row.title) for row in rows], catalog.standing())
            version += before is not None and now != before
            before = now
            self._show(FollowedState(version, len(rows)))
            self._wake.wait(_LIST_S)

    def _show(self, seen: FollowedState) -> None:
        if seen != self.seen:
            self.seen = seen
            self._tell()

    def _tell(self) -> None:
        loop = self._streams.loop
        if loop is not None and not loop.is_closed():
            for event in list(self.listeners):
                loop.call_soon_threadsafe(event.set)


class Streams:
    """The followers there are. Asked on the event loop alone."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.loop: asyncio.AbstractEventLoop | None = None
        self._followers: dict[str, Follower] = {}
        self._is_over = False

    def stop(self) -> None:
        """All of them end, and so does what listens."""
        self._is_over = True
        for follower in self._followers.values():
            follower.stop()
            for event in follower.listeners:
                event.set()

    async def listen(self, name: str, since: int | None) -> AsyncIterator[str]:
        """Changes as server-sent events since a version; a comment now and then, so that the other end knows."""
        follower = self._followers.get(name)
        if follower is None or follower.is_over:
            follower = self._followers[name] = Follower(self, name)
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
                    told = {**seen._asdict(), "first": follower.changed_since(since or 0)}
                    is_news = seen.version != since or state
                    since, state = seen.version, seen.state
                    if is_news:
                        yield f"id: {seen.version}\ndata: {msgspec.json.encode(told).decode()}\n\n"
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
