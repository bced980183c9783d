"""What is being said, from process to process through the database: in messages to who listens, not in tables.

A listener has a row that it renews, as who watches a session has. Whoever speaks asks for those rows, for all of its
sessions at once, and sends each listener what it lacks.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable

from turnlog.errors import NotFound
from turnlog.store.broadcast import PAUSE_S, Delta, LiveText, delta_of
from turnlog.store.postgres.background import BackgroundThread, Watched
from turnlog.store.postgres.lease import Leases
from turnlog.store.postgres.pool import Connection

_PAYLOAD = 7_900
"""The server takes fewer than 8,000 bytes in a message."""
_NAME = "~"
"""How the names of listeners begin, among those who only watch."""
_MOST = 10_000
"""A listener that has not taken so many frames is told anew when it goes on."""
_LISTENERS = """
select split_part(name, ' ', 2)::bigint, split_part(name, ' ', 3) from turnlog.lease
where tenant = %s and name > 'watch ' and name < 'watch!' and strpos(name, ' ~') > 0 and until > clock_timestamp()
"""
_SAY = "select pg_notify(%s, payload) from unnest(%s::text[]) as payload"


class NoticeInbox:
    """See `Inbox`. Filled by the thread that listens."""

    def __init__(self, what: Watched, leave: Callable[[NoticeInbox], None]) -> None:
        self.what = what
        self._leave = leave
        self._mutex = threading.Lock()
        self.lose()

    def lose(self) -> None:
        """Something did not arrive, or is too much: under another name it is told all of it."""
        with self._mutex:
            self.name = _NAME + uuid.uuid4().hex
            self._frames: deque[bytes] = deque()

    def put(self, frame: bytes) -> None:
        """One more."""
        with self._mutex:
            self._frames.append(frame)
            is_full = len(self._frames) > _MOST
        if is_full:
            self.lose()

    def take(self) -> list[Delta]:
        with self._mutex:
            frames, self._frames = self._frames, deque()
        return [delta for frame in frames if (delta := delta_of(frame))]

    def close(self) -> None:
        self._leave(self)


class PostgresBroadcast(BackgroundThread):
    """Brings what this process says to whoever listens."""

    def after_fork(self) -> None:
        """See `BackgroundThread`."""
        super().after_fork()
        self._texts: list[tuple[Watched, LiveText]] = []

    def speak(self, leases: Leases, num: int, text: LiveText) -> Callable[[], None]:
        """See `Broadcasts.speak`."""
        with self._changed:
            self._texts.append((self._watched_by(leases, num), text))
            self._wake()

        def stop() -> None:
            text.is_over = True

        return stop

    def _goes_on(self) -> bool:
        with self._changed:
            if not self._texts or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            texts = list(self._texts)
        ending = [item for item in texts if item[1].is_over]
        for tenant in {what.tenant for what, _ in texts}:
            said = [item for item in texts if item[0].tenant == tenant]
            try:
                self._say(connection, self._as(connection, tenant), said)
            except NotFound:
                ending += said  # the tenant was dropped
        with self._changed:
            self._texts = [item for item in self._texts if item not in ending]
        time.sleep(PAUSE_S)

    def _say(self, connection: Connection, leases: Leases, texts: list[tuple[Watched, LiveText]]) -> None:
        listeners: dict[int, list[str]] = {}
        for num, name in connection.execute(_LISTENERS, (leases.tenant,)).fetchall():
            listeners.setdefault(num, []).append(name)
        payloads: list[str] = []
        for what, text in texts:
            text.look()
            for name in listeners.get(what.num, ()):
                payloads += [f"{name} {frame.decode()}" for frame in text.due(name, _PAYLOAD - len(name))]
        if payloads:
            connection.execute(_SAY, (leases.channel(connection), payloads))

    def _lost(self) -> None:
        with self._changed:
            for _, text in self._texts:
                text.forget()

    def _end(self, connection: Connection) -> None:
        pass
