"""Live text between processes through the database: in notifications to listeners, not in tables.

A listener has a row that it renews, as every watcher of a session has. A speaker queries those rows, for all of its
sessions at once, and sends each listener what it lacks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import LiteralString

from turnlog.errors import NotFound
from turnlog.store.broadcast import PAUSE_S, Delta, LiveText, delta_of
from turnlog.store.postgres.background import BackgroundThread, Watched
from turnlog.store.postgres.lease import Leases
from turnlog.store.postgres.leasename import LISTENS, NUMBER_AND_LISTENER, new_listener
from turnlog.store.postgres.pool import Connection

_PAYLOAD = 7_900
"""The most bytes per notification: the server's limit is below 8,000."""
_MOST = 10_000
"""The most unread frames of a listener; beyond that, the whole text is sent to it again."""
_LISTENERS: LiteralString = f"""
select {NUMBER_AND_LISTENER} from turnlog.lease where tenant = %s and {LISTENS} and until > clock_timestamp()
"""
_SEND = "select pg_notify(%s, payload) from unnest(%s::text[]) as payload"


class NoticeInbox:
    """See `Inbox`. The listening thread fills it."""

    def __init__(self, session: Watched, leave: Callable[[NoticeInbox], None]) -> None:
        self.session = session
        self._leave = leave
        self._mutex = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Take a new name after lost or too many frames, so that the whole text is sent again."""
        with self._mutex:
            self.name = new_listener()
            self._frames: deque[bytes] = deque()

    def put(self, name: str, frame: bytes) -> None:
        """Add a frame that was sent to this name. One that was sent to an earlier name continues a lost one."""
        with self._mutex:
            if name != self.name:
                return
            self._frames.append(frame)
            is_full = len(self._frames) > _MOST
        if is_full:
            self.reset()

    def take(self) -> list[Delta]:
        with self._mutex:
            frames, self._frames = self._frames, deque()
        return [delta for frame in frames if (delta := delta_of(frame))]

    def close(self) -> None:
        self._leave(self)


class PostgresBroadcast(BackgroundThread):
    """Sends the live text of this process to listeners."""

    def after_fork(self) -> None:
        """See `BackgroundThread`."""
        super().after_fork()
        self._texts: list[tuple[Watched, LiveText]] = []

    def publish(self, leases: Leases, num: int, text: LiveText) -> Callable[[], None]:
        """See `CarryLiveText.publish`."""
        with self._changed:
            self._texts.append((self._watched_by(leases, num), text))
            self._wake()

        def stop() -> None:
            text.is_over = True

        return stop

    def _has_work(self) -> bool:
        with self._changed:
            if not self._texts or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            texts = list(self._texts)
        ending = [item for item in texts if item[1].is_over]
        for tenant in {session.tenant for session, _ in texts}:
            own = [item for item in texts if item[0].tenant == tenant]
            try:
                self._send(connection, self._as(connection, tenant), own)
            except NotFound:
                ending += own  # the tenant was dropped
        with self._changed:
            self._texts = [item for item in self._texts if item not in ending]
        time.sleep(PAUSE_S)

    def _send(self, connection: Connection, leases: Leases, texts: list[tuple[Watched, LiveText]]) -> None:
        listeners: dict[int, list[str]] = {}
        for num, name in connection.execute(_LISTENERS, (leases.tenant,)).fetchall():
            listeners.setdefault(num, []).append(name)
        payloads: list[str] = []
        for session, text in texts:
            text.refresh()
            for name in listeners.get(session.num, ()):
                payloads += [f"{name} {frame.decode()}" for frame in text.frames_for(name, _PAYLOAD - len(name))]
        if payloads:
            connection.execute(_SEND, (leases.channel(connection), payloads))

    def _on_disconnect(self) -> None:
        with self._changed:
            for _, text in self._texts:
                text.reset()

    def _end(self, connection: Connection) -> None:
        pass
