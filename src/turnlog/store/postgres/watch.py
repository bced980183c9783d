"""Notifying followers of a session. Notifications are only hints: a follower also polls.

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
"""The pause between two notifications of one process, and between two rounds of its listener."""
_POLL_S = 0.2
"""The pause between two polls, if listening is not possible."""
_UNUSED_S = 10.0
"""After this long without a waiting reader, or without an append to notify of, a thread stops."""
_WATCH = """
insert into turnlog.lease (tenant, name, who, until)
select %s, name, '', clock_timestamp() + make_interval(secs => %s) from unnest(%s::text[]) as name
on conflict (tenant, name) do update set until = excluded.until
"""
_ENDS = "select num, last_seq from turnlog.session where tenant = %s and num = any(%s)"
_NOTIFY = "select pg_notify(%s, num::text) from unnest(%s::bigint[]) as num"


class Listener(BackgroundThread):
    """The subscribers to new entries and the listeners to live text in this process, of all sessions."""

    def after_fork(self) -> None:
        """Reset in a child process: no reader waits yet."""
        super().after_fork()
        self._used: dict[Watched, float] = {}
        """When a reader last waited for a session."""
        self._rows: dict[str, Watched] = {}
        """The names of the rows by which writers know that a session is watched, and their sessions."""
        self._ends: dict[Watched, int] = {}
        """The ends of the logs at the last poll."""
        self._renew_at = 0.0
        self._id = uuid.uuid4().hex
        self._news: dict[Watched, int] = {}
        """The number of notifications for each session."""
        self._callbacks: dict[Watched, list[Callable[[], None]]] = {}
        """The callbacks of the subscribers to each session."""
        self._inboxes: dict[str, NoticeInbox] = {}
        """The inboxes of listeners to live text, by their names."""
        self._has_warned = False

    @property
    def watched(self) -> set[Watched]:
        """Return the sessions that this listener watches."""
        return set(self._rows.values())

    def _use(self, leases: Leases, num: int) -> Watched:
        session = self._watched_by(leases, num)
        if self._connections.is_pooled and not self._has_warned:
            self._has_warned = True
            server = self._connections.server
            _logger.warning(
                "following polls every %g s: the pooler before %s passes on no notifications", _POLL_S, server
            )
        self._used[session] = time.monotonic()
        self._wake()
        return session

    def wait(self, leases: Leases, num: int, seconds: float, is_over: Callable[[], bool]) -> None:
        """Wait for a notification for that session, until `is_over` returns True or `seconds` have passed."""
        with self._changed:
            session = self._use(leases, num)
            counted = self._news.get(session, 0)
            self._changed.wait_for(
                lambda: self._news.get(session, 0) != counted or self._is_over or is_over(), timeout=seconds
            )

    def subscribe(self, leases: Leases, num: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` at each notification for a session. Returns a function that ends this."""
        with self._changed:
            session = self._use(leases, num)
            self._callbacks.setdefault(session, []).append(callback)

        def stop() -> None:
            with self._changed:
                callbacks = self._callbacks.get(session, [])
                if callback in callbacks:
                    callbacks.remove(callback)
                if not callbacks:
                    self._callbacks.pop(session, None)

        return stop

    def open_inbox(self, leases: Leases, num: int) -> NoticeInbox:
        """Return an inbox for the live text of that session, from now on."""
        with self._changed:
            inbox = NoticeInbox(self._use(leases, num), self._leave)
            self._inboxes[inbox.name] = inbox
        return inbox

    def _leave(self, inbox: NoticeInbox) -> None:
        with self._changed:
            self._inboxes = {name: one for name, one in self._inboxes.items() if one is not inbox}

    def wake(self, tenant: int, num: int) -> None:
        """Wake every reader that waits for that session, to check whether its wait is over."""
        with self._changed:
            self._changed.notify_all()
            callbacks = list(self._callbacks.get(Watched(tenant, num), ()))
        for callback in callbacks:
            callback()

    def _has_work(self) -> bool:
        with self._changed:
            if not self._used or self._is_over:
                self._thread = None
                return False
            return True

    def _work(self, connection: Connection) -> None:
        with self._changed:
            limit = time.monotonic() - _UNUSED_S
            needed = self._callbacks.keys() | {inbox.session for inbox in self._inboxes.values()}
            for session in [session for session, used in self._used.items() if used < limit and session not in needed]:
                self._forget(session)
            self._rename_inboxes()
            wanted = {watch_name(session.num, self._id): session for session in self._used}
            wanted |= {watch_name(inbox.session.num, name): inbox.session for name, inbox in self._inboxes.items()}
        try:
            if connection.is_pooled:
                self._poll(connection, set(wanted.values()))
            else:
                self._listen(connection, wanted)
        except (NotFound, psycopg.errors.InsufficientPrivilege):
            self._give_up(connection.tenant)

    def _give_up(self, tenant: str) -> None:
        """Forget a dropped tenant: readers of its sessions get an error when they poll."""
        with self._changed:
            gone = {number for number, leases in self._tenants.items() if leases.pool.tenant == tenant}
            for session in [session for session in self._used if session.tenant in gone]:
                self._forget(session)
            self._inboxes = {name: one for name, one in self._inboxes.items() if one.session.tenant not in gone}
            self._rows = {name: session for name, session in self._rows.items() if session.tenant not in gone}

    def _forget(self, session: Watched) -> None:
        del self._used[session]
        self._news.pop(session, None)
        self._ends.pop(session, None)

    def _poll(self, connection: Connection, wanted: set[Watched]) -> None:
        for tenant, nums in by_tenant(wanted):
            self._as(connection, tenant)
            rows = connection.execute(_ENDS, (tenant, nums), binary=True).fetchall()
            ends = {Watched(tenant, num): seq for num, seq in rows}
            now = {Watched(tenant, num): ends.get(Watched(tenant, num), -1) for num in nums}
            news = {session for session, seq in now.items() if self._ends.get(session) != seq}
            self._ends.update(now)
            self._notify(news)
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._used.keys() - wanted, timeout=_POLL_S)

    def _listen(self, connection: Connection, wanted: dict[str, Watched]) -> None:
        new, gone, now = wanted.keys() - self._rows.keys(), self._rows.keys() - wanted.keys(), time.monotonic()
        before, after = ({session.tenant for session in rows.values()} for rows in (self._rows, wanted))
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
        self._notify({wanted[name] for name in new})  # nobody notified us of entries from before we listened
        self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        channels = {
            self._tenants[tenant].channel(connection): tenant for tenant in {one.tenant for one in self.watched}
        }
        notices: list[tuple[str, str]] = []
        while (notice := connection.pgconn.notifies()) is not None:  # notifications that came with the answers
            notices.append((notice.relname.decode(), notice.extra.decode()))
        if not notices:
            notices = [(one.channel, one.payload) for one in connection.notifies(timeout=_PAUSE_S, stop_after=1)]
        for channel, payload in notices:
            if channel in channels:
                self._dispatch(channels[channel], payload)

    def _dispatch(self, tenant: int, payload: str) -> None:
        if payload.isdecimal():
            self._notify({Watched(tenant, int(payload))})
            return
        name, _, frame = payload.partition(" ")
        with self._changed:
            inbox = self._inboxes.get(name)
        if inbox is not None and inbox.session.tenant == tenant:
            inbox.put(name, frame.encode())
            self._notify({inbox.session})

    def _rename_inboxes(self) -> None:
        """With the lock: register the new names of inboxes that lost frames, so that the whole text is sent again."""
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

    def _notify(self, notified: set[Watched]) -> None:
        if notified:
            with self._changed:
                for session in notified & self._used.keys():
                    self._news[session] = self._news.get(session, 0) + 1
                self._changed.notify_all()
                callbacks = [callback for session in notified for callback in self._callbacks.get(session, ())]
            for callback in callbacks:
                callback()

    def _on_disconnect(self) -> None:
        self._rows, self._renew_at = {}, 0.0
        with self._changed:
            for inbox in self._inboxes.values():
                inbox.reset()


class Notifier(BackgroundThread):
    """Notifies watchers of what this process wrote, after it was committed."""

    def after_fork(self) -> None:
        """Reset in a child process: there is nothing to notify of yet."""
        super().after_fork()
        self._marked: set[Watched] = set()

    def notify_append(self, leases: Leases, num: int) -> None:
        """Record an append to a watched session."""
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
            connection.execute(_NOTIFY, (channel, nums))
        time.sleep(_PAUSE_S)

    def _on_disconnect(self) -> None:
        pass  # watchers also poll

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
        self.notifier = Notifier(connections, "turnlog notifier")
        self.broadcast = PostgresBroadcast(connections, "turnlog broadcast")

    def close(self) -> None:
        """End the threads."""
        self.listener.close()
        self.notifier.close()
        self.broadcast.close()
        self.renewal.close()


class Watch:
    """The readers that wait for sessions of one tenant, and their callbacks."""

    def __init__(self, leases: Leases, threads: ServerThreads) -> None:
        self.leases = leases
        self.listener = threads.listener
        self.notifier = threads.notifier
        self.broadcast = threads.broadcast

    def wait(self, num: int, seconds: float, is_over: Callable[[], bool]) -> None:
        """See `Listener.wait`."""
        self.listener.wait(self.leases, num, seconds, is_over)

    def subscribe(self, num: int, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Listener.subscribe`."""
        return self.listener.subscribe(self.leases, num, callback)

    def wake(self, num: int) -> None:
        """See `Listener.wake`."""
        self.listener.wake(self.leases.tenant, num)

    def notify_append(self, num: int) -> None:
        """See `Notifier.notify_append`."""
        self.notifier.notify_append(self.leases, num)

    def open_inbox(self, num: int) -> NoticeInbox | None:
        """See `Listener.open_inbox`; None behind a pooler."""
        connections = self.leases.pool.connections
        return None if connections.is_pooled else self.listener.open_inbox(self.leases, num)

    def publish(self, num: int, text: LiveText) -> Callable[[], None]:
        """See `CarryLiveText.publish`."""
        return self.broadcast.publish(self.leases, num, text)
