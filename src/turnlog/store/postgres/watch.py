"""Waking those who follow a session. Only a hint: a follower looks again by itself before long.

A watcher renews a row with the session's number as long as it watches. The append statement checks for that row, which
costs no extra round trip. If it is there, a thread of the writer notifies the watchers after the commit, for all
sessions at once and not too often: a notification inside the transaction would make all commits of the database wait
for each other. The channel has a name that only the tenant knows. One connection listens for all tenants.

Behind a pooler, listening is not possible. Then one thread polls where the logs end that this process follows.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable

import psycopg

from turnlog.errors import NotFound
from turnlog.store.broadcast import LiveText
from turnlog.store.postgres.background import BackgroundThread, Watched, by_tenant
from turnlog.store.postgres.broadcast import NoticeInbox, PostgresBroadcast
from turnlog.store.postgres.lease import TERM_S, Leases, Renewal
from turnlog.store.postgres.leasename import watch_name
from turnlog.store.postgres.pool import Connection, Connections

_logger = logging.getLogger("turnlog")

_PAUSE_S = 0.05
"""Between two notifications of one process, and between two rounds of its listener."""
_ASK_S = 0.2
"""Between two polls, where listening is not possible."""
_UNUSED_S = 10.0
"""After this long without a waiting reader, or without an append to notify of, a thread stops."""
_WATCH = """
insert into turnlog.lease (tenant, name, who, until)
select %s, name, '', clock_timestamp() + make_interval(secs => %s) from unnest(%s::text[]) as name
on conflict (tenant, name) do update set until = excluded.until
"""
_ENDS = "select num, last_seq from turnlog.session where tenant = %s and num = any(%s)"
_TELL = "select pg_notify(%s, num::text) from unnest(%s::bigint[]) as num"


class Listener(BackgroundThread):
    """Knows which readers in this process wait for which session."""

    def after_fork(self) -> None:
        """In a child process no reader waits yet."""
        super().after_fork()
        self._used: dict[Watched, float] = {}
        """When a reader last waited for a session."""
        self._rows: dict[str, Watched] = {}
        """The rows by which writers know that a session is watched."""
        self._ends: dict[Watched, int] = {}
        """Where the logs ended at the last poll."""
        self._renew_at = 0.0
        self._id = uuid.uuid4().hex
        self._news: dict[Watched, int] = {}
        """How many notifications came for a session."""
        self._callbacks: dict[Watched, list[Callable[[], None]]] = {}
        """The callbacks for a notification."""
        self._inboxes: dict[str, NoticeInbox] = {}
        """The listeners to live text, by their names."""
        self._has_said = False

    @property
    def watched(self) -> set[Watched]:
        """The sessions that it listens for."""
        return set(self._rows.values())

    def _use(self, leases: Leases, num: int) -> Watched:
        what = self._watched_by(leases, num)
        if self._connections.is_pooled and not self._has_said:
            self._has_said = True
            place = self._connections.place
            _logger.warning("following asks every %g s: a pooler before %s keeps messages from us", _ASK_S, place)
        self._used[what] = time.monotonic()
        self._wake()
        return what

    def wait(self, leases: Leases, num: int, seconds: float, is_over: Callable[[], bool]) -> None:
        """Until a notification for that session comes, `is_over` says so, or `seconds` have passed."""
        with self._changed:
            what = self._use(leases, num)
            counted = self._news.get(what, 0)
            self._changed.wait_for(
                lambda: self._news.get(what, 0) != counted or self._is_over or is_over(), timeout=seconds
            )

    def subscribe(self, leases: Leases, num: int, tell: Callable[[], None]) -> Callable[[], None]:
        """Have `tell` called at each notification for a session, until what this returns is called."""
        with self._changed:
            what = self._use(leases, num)
            self._callbacks.setdefault(what, []).append(tell)

        def stop() -> None:
            with self._changed:
                listeners = self._callbacks.get(what, [])
                if tell in listeners:
                    listeners.remove(tell)
                if not listeners:
                    self._callbacks.pop(what, None)

        return stop

    def open_inbox(self, leases: Leases, num: int) -> NoticeInbox:
        """The live text of that session, from now on."""
        with self._changed:
            inbox = NoticeInbox(self._use(leases, num), self._leave)
            self._inboxes[inbox.name] = inbox
        return inbox

    def _leave(self, inbox: NoticeInbox) -> None:
        with self._changed:
            self._inboxes = {name: one for name, one in self._inboxes.items() if one is not inbox}

    def wake(self, tenant: int, num: int) -> None:
        """Have every reader that waits for that session look whether it is over."""
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._callbacks.get(Watched(tenant, num), ()))
        for tell in listeners:
            tell()

    def _has_work(self) -> bool:
        with self._changed:
            if not self._used or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            limit = time.monotonic() - _UNUSED_S
            needed = self._callbacks.keys() | {inbox.what for inbox in self._inboxes.values()}
            for what in [what for what, used in self._used.items() if used < limit and what not in needed]:
                self._forget(what)
            self._begin_again()
            wanted = {watch_name(what.num, self._id): what for what in self._used}
            wanted |= {watch_name(inbox.what.num, name): inbox.what for name, inbox in self._inboxes.items()}
        try:
            if connection.is_pooled:
                self._ask(connection, set(wanted.values()))
            else:
                self._listen(connection, wanted)
        except (NotFound, psycopg.errors.InsufficientPrivilege):
            self._give_up(connection.tenant)

    def _give_up(self, tenant: str) -> None:
        """That tenant is gone: readers of its sessions find out when they look."""
        with self._changed:
            gone = {number for number, leases in self._tenants.items() if leases.pool.tenant == tenant}
            for what in [what for what in self._used if what.tenant in gone]:
                self._forget(what)
            self._inboxes = {name: one for name, one in self._inboxes.items() if one.what.tenant not in gone}
            self._rows = {name: what for name, what in self._rows.items() if what.tenant not in gone}

    def _forget(self, what: Watched) -> None:
        del self._used[what]
        self._news.pop(what, None)
        self._ends.pop(what, None)

    def _ask(self, connection: Connection, wanted: set[Watched]) -> None:
        for tenant, those in by_tenant(wanted):
            self._as(connection, tenant)
            rows = connection.execute(_ENDS, (tenant, those), binary=True).fetchall()
            ends = {Watched(tenant, num): seq for num, seq in rows}
            now = {Watched(tenant, num): ends.get(Watched(tenant, num), -1) for num in those}
            news = {what for what, seq in now.items() if self._ends.get(what) != seq}
            self._ends.update(now)
            self._notify(news)
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._used.keys() - wanted, timeout=_ASK_S)

    def _listen(self, connection: Connection, wanted: dict[str, Watched]) -> None:
        new, gone, now = wanted.keys() - self._rows.keys(), self._rows.keys() - wanted.keys(), time.monotonic()
        before, after = ({what.tenant for what in rows.values()} for rows in (self._rows, wanted))
        for tenant in after - before:
            connection.execute(f"listen {self._as(connection, tenant).channel(connection)}", prepare=False)
        is_due = now > self._renew_at
        for tenant, names in _names(wanted, wanted.keys() if is_due else new):
            self._as(connection, tenant)
            connection.execute(_WATCH, (tenant, TERM_S, names))
        self._renew_at = now + TERM_S / 3 if is_due else self._renew_at
        rows, self._rows = self._rows, wanted
        self._unwatch(connection, rows, gone)
        for tenant in before - after:
            connection.execute(f"unlisten {self._as(connection, tenant).channel(connection)}", prepare=False)
        self._notify({wanted[name] for name in new})  # what came before we listened was not notified
        self._hear(connection)

    def _hear(self, connection: Connection) -> None:
        channels = {
            self._tenants[tenant].channel(connection): tenant for tenant in {one.tenant for one in self.watched}
        }
        notices: list[tuple[str, str]] = []
        while (notice := connection.pgconn.notifies()) is not None:  # what came with the answers
            notices.append((notice.relname.decode(), notice.extra.decode()))
        if not notices:
            notices = [(one.channel, one.payload) for one in connection.notifies(timeout=_PAUSE_S, stop_after=1)]
        for channel, payload in notices:
            if channel in channels:
                self._take(channels[channel], payload)

    def _take(self, tenant: int, payload: str) -> None:
        if payload.isdecimal():
            self._notify({Watched(tenant, int(payload))})
            return
        name, _, frame = payload.partition(" ")
        with self._changed:
            inbox = self._inboxes.get(name)
        if inbox is not None and inbox.what.tenant == tenant:
            inbox.put(frame.encode())
            self._notify({inbox.what})

    def _begin_again(self) -> None:
        """With the lock: an inbox that lost something has a new name, so that it is sent all of it again."""
        for name, inbox in list(self._inboxes.items()):
            if inbox.name != name:
                self._inboxes[inbox.name] = self._inboxes.pop(name)

    def _unwatch(self, connection: Connection, rows: dict[str, Watched], gone: Iterable[str]) -> None:
        for tenant, names in _names(rows, gone):
            self._as(connection, tenant)
            connection.execute("select turnlog.drop_leases(%s::text[])", (names,))

    def _end(self, connection: Connection) -> None:
        rows, self._rows = self._rows, {}
        self._unwatch(connection, rows, rows)

    def _notify(self, heard: set[Watched]) -> None:
        if heard:
            with self._changed:
                for what in heard & self._used.keys():
                    self._news[what] = self._news.get(what, 0) + 1
                self._changed.notify_all()
                listeners = [tell for what in heard for tell in self._callbacks.get(what, ())]
            for tell in listeners:
                tell()

    def _on_disconnect(self) -> None:
        self._rows, self._renew_at = {}, 0.0
        with self._changed:
            for inbox in self._inboxes.values():
                inbox.reset()


class Teller(BackgroundThread):
    """Notifies watchers of what this process wrote, after it was committed."""

    def after_fork(self) -> None:
        """In a child process no reader waits yet."""
        super().after_fork()
        self._marked: set[Watched] = set()

    def note_append(self, leases: Leases, num: int) -> None:
        """Something was written to a watched session."""
        with self._changed:
            self._marked.add(self._watched_by(leases, num))
            self._wake()

    def _has_work(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._marked or self._is_over, timeout=_UNUSED_S)
            if not self._marked or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            marked, self._marked = self._marked, set()
        for tenant, nums in by_tenant(marked):
            try:
                channel = self._as(connection, tenant).channel(connection)
            except NotFound:
                continue  # the tenant was dropped
            connection.execute(_TELL, (channel, nums))
        time.sleep(_PAUSE_S)

    def _on_disconnect(self) -> None:
        pass  # a watcher finds by itself what was not notified

    def _end(self, connection: Connection) -> None:
        pass


def _names(rows: dict[str, Watched], wanted: Iterable[str]) -> list[tuple[int, list[str]]]:
    names: dict[int, list[str]] = {}
    for name in wanted:
        names.setdefault(rows[name].tenant, []).append(name)
    return list(names.items())


class ServerThreads:
    """The threads that a process has once per server, for all tenants there."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.renewal = Renewal()
        self.listener = Listener(connections, "turnlog listener")
        self.teller = Teller(connections, "turnlog teller")
        self.broadcast = PostgresBroadcast(connections, "turnlog broadcast")

    def close(self) -> None:
        """End the threads."""
        self.listener.close()
        self.teller.close()
        self.broadcast.close()
        self.renewal.close()


class Watch:
    """The readers that wait for sessions of one tenant, and their callbacks."""

    def __init__(self, leases: Leases, threads: ServerThreads) -> None:
        self.leases = leases
        self.listener = threads.listener
        self.teller = threads.teller
        self.broadcast = threads.broadcast

    def wait(self, num: int, seconds: float, is_over: Callable[[], bool]) -> None:
        """See `Listener.wait`."""
        self.listener.wait(self.leases, num, seconds, is_over)

    def subscribe(self, num: int, tell: Callable[[], None]) -> Callable[[], None]:
        """See `Listener.subscribe`."""
        return self.listener.subscribe(self.leases, num, tell)

    def wake(self, num: int) -> None:
        """See `Listener.wake`."""
        self.listener.wake(self.leases.tenant, num)

    def note_append(self, num: int) -> None:
        """See `Teller.note_append`."""
        self.teller.note_append(self.leases, num)

    def open_inbox(self, num: int) -> NoticeInbox | None:
        """See `Listener.open_inbox`; None behind a pooler."""
        connections = self.leases.pool.connections
        return None if connections.is_pooled else self.listener.open_inbox(self.leases, num)

    def publish(self, num: int, text: LiveText) -> Callable[[], None]:
        """See `CarryLiveText.speak`."""
        return self.broadcast.publish(self.leases, num, text)
