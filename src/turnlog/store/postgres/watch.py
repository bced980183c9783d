"""Waking those who follow a session. Only a favour: whoever waits looks again by himself before long.

A watcher renews a row with the session's number as long as it watches. An append looks for it in its own statement,
and so learns for nothing whether anybody does. If so, a thread of the writer tells them after the commit, for all
sessions at once and not too often: a notification inside the transaction would make all commits of the database wait
for each other. The channel has a name that only the tenant knows.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from turnlog.store.postgres.background import BackgroundThread
from turnlog.store.postgres.broadcast import NoticeInbox, PostgresBroadcast
from turnlog.store.postgres.lease import TERM_S, Leases
from turnlog.store.postgres.pool import Connection

_PAUSE_S = 0.05
"""Between two messages of one process, and between two looks of a listener at who wants what."""
_UNUSED_S = 10.0
"""Nobody waits for a session any more, or nobody writes to one that is watched."""
_WATCH = """
insert into turnlog.lease (tenant, name, who, until)
select %s, name, '', clock_timestamp() + make_interval(secs => %s) from unnest(%s::text[]) as name
on conflict (tenant, name) do update set until = excluded.until
"""
_TELL = "select pg_notify(%s, num::text) from unnest(%s::bigint[]) as num"


def watch_name(num: int) -> str:
    """How the rows of all begin who watch that session."""
    return f"watch {num}"


class Listener(BackgroundThread):
    """Knows who in this process waits for which session."""

    def after_fork(self) -> None:
        """See above."""
        super().after_fork()
        self._used: dict[int, float] = {}
        """When somebody last waited for a session."""
        self._watched: set[int] = set()
        self._rows: set[str] = set()
        """By which others know it."""
        self._renew_at = 0.0
        self._id = uuid.uuid4().hex
        self._news: dict[int, int] = {}
        """How often something was heard of a session."""
        self._told: dict[int, list[Callable[[], None]]] = {}
        """Who is called when something is heard."""
        self._inboxes: dict[str, NoticeInbox] = {}
        """Those who listen to what is being said, by the names they go by."""

    def wait(self, num: int, seconds: float, is_over: Callable[[], bool]) -> None:
        """Until something is heard of that session, or it is over, or so long."""
        with self._changed:
            known = self._news.get(num, 0)
            self._used[num] = time.monotonic()
            self._wake()
            self._changed.wait_for(
                lambda: self._news.get(num, 0) != known or self._is_over or is_over(), timeout=seconds
            )

    def subscribe(self, num: int, tell: Callable[[], None]) -> Callable[[], None]:
        """Have that called when something is heard of a session, until what this returns is called."""
        with self._changed:
            self._told.setdefault(num, []).append(tell)
            self._used[num] = time.monotonic()
            self._wake()

        def stop() -> None:
            with self._changed:
                told = self._told.get(num, [])
                if tell in told:
                    told.remove(tell)
                if not told:
                    self._told.pop(num, None)

        return stop

    def hear(self, num: int) -> NoticeInbox:
        """What is being said in that session, from now on."""
        inbox = NoticeInbox(num, self._leave)
        with self._changed:
            self._inboxes[inbox.name] = inbox
            self._used[num] = time.monotonic()
            self._wake()
        return inbox

    def _leave(self, inbox: NoticeInbox) -> None:
        with self._changed:
            self._inboxes = {name: one for name, one in self._inboxes.items() if one is not inbox}

    def stir(self) -> None:
        """Have everybody look whether it is over."""
        with self._changed:
            self._changed.notify_all()
            told = [tell for those in self._told.values() for tell in those]
        for tell in told:
            tell()

    def _goes_on(self) -> bool:
        with self._changed:
            if not self._used or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            limit = time.monotonic() - _UNUSED_S
            needed = self._told.keys() | {inbox.num for inbox in self._inboxes.values()}
            for num in [num for num, used in self._used.items() if used < limit and num not in needed]:
                del self._used[num]
                self._news.pop(num, None)
            self._begin_again()
            wanted = {f"{watch_name(num)} {self._id}": num for num in self._used}
            wanted |= {f"{watch_name(inbox.num)} {name}": inbox.num for name, inbox in self._inboxes.items()}
        if wanted and not self._rows:
            connection.execute(f"listen {self._leases.channel(connection)}".encode(), prepare=False)
        new, now = wanted.keys() - self._rows, time.monotonic()
        if new or now > self._renew_at:
            connection.execute(_WATCH, (self._leases.tenant, TERM_S, list(wanted)))
            self._renew_at = now + TERM_S / 3
        gone, self._rows, self._watched = self._rows - wanted.keys(), set(wanted), set(wanted.values())
        self._unwatch(connection, gone)
        self._tell({wanted[name] for name in new})  # what came before we listened, nobody told us
        for notice in connection.notifies(timeout=_PAUSE_S, stop_after=1):
            self._take(notice.payload)

    def _take(self, payload: str) -> None:
        if payload.isdecimal():
            self._tell({int(payload)})
            return
        name, _, frame = payload.partition(" ")
        with self._changed:
            inbox = self._inboxes.get(name)
        if inbox is not None:
            inbox.put(frame.encode())
            self._tell({inbox.num})

    def _begin_again(self) -> None:
        """With the lock: an inbox that lost something goes by another name, so that it is told all of it anew."""
        for name, inbox in list(self._inboxes.items()):
            if inbox.name != name:
                self._inboxes[inbox.name] = self._inboxes.pop(name)

    def _unwatch(self, connection: Connection, names: set[str]) -> None:
        if names:
            connection.execute("select turnlog.drop_leases(%s::text[])", (list(names),))

    def _end(self, connection: Connection) -> None:
        rows, self._rows, self._watched = self._rows, set(), set()
        self._unwatch(connection, rows)

    def _tell(self, heard: set[int]) -> None:
        if heard:
            with self._changed:
                for num in heard & self._used.keys():
                    self._news[num] = self._news.get(num, 0) + 1
                self._changed.notify_all()
                told = [tell for num in heard for tell in self._told.get(num, ())]
            for tell in told:
                tell()

    def _lost(self) -> None:
        self._rows, self._watched = set(), set()
        with self._changed:
            for inbox in self._inboxes.values():
                inbox.lose()


class Teller(BackgroundThread):
    """Tells those who watch what this process wrote, after it was committed."""

    def after_fork(self) -> None:
        """See above."""
        super().after_fork()
        self._marked: set[int] = set()

    def mark(self, num: int) -> None:
        """Something was written to a session that somebody watches."""
        with self._changed:
            self._marked.add(num)
            self._wake()

    def _goes_on(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._marked or self._is_over, timeout=_UNUSED_S)
            if not self._marked or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            marked, self._marked = self._marked, set()
        connection.execute(_TELL, (self._leases.channel(connection), sorted(marked)))
        time.sleep(_PAUSE_S)

    def _lost(self) -> None:
        pass  # what could not be told is found by those who look

    def _end(self, connection: Connection) -> None:
        pass


class Watch:
    """All of them."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self.listener = Listener(leases, "turnlog listener")
        self.teller = Teller(leases, "turnlog teller")
        self.broadcast = PostgresBroadcast(leases, "turnlog broadcast")

    def close(self) -> None:
        """End the threads."""
        self.listener.close()
        self.teller.close()
        self.broadcast.close()
