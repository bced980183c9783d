"""Waking those who follow a session. Only a favour: whoever waits looks again by himself before long.

A watcher renews a row with the session's number as long as it watches. An append looks for it in its own statement,
and so learns for nothing whether anybody does. If so, a thread of the writer tells them after the commit, for all
sessions at once and not too often: a notification inside the transaction would make all commits of the database wait
for each other. The channel has a name that only the tenant knows. One connection listens for all tenants.

Behind a pooler nobody can listen. Then one thread asks for all who follow in this process where their logs end.
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
from turnlog.store.postgres.pool import Connection, Connections

_logger = logging.getLogger("turnlog")

_PAUSE_S = 0.05
"""Between two messages of one process, and between two looks of a listener at who wants what."""
_ASK_S = 0.2
"""Between two questions of one who cannot listen."""
_UNUSED_S = 10.0
"""Nobody waits for a session any more, or nobody writes to one that is watched."""
_WATCH = """
insert into turnlog.lease (tenant, name, who, until)
select %s, name, '', clock_timestamp() + make_interval(secs => %s) from unnest(%s::text[]) as name
on conflict (tenant, name) do update set until = excluded.until
"""
_ENDS = "select num, last_seq from turnlog.session where tenant = %s and num = any(%s)"
_TELL = "select pg_notify(%s, num::text) from unnest(%s::bigint[]) as num"


def watch_name(num: int) -> str:
    """How the rows of all begin who watch that session."""
    return f"watch {num}"


class Listener(BackgroundThread):
    """Knows who in this process waits for which session."""

    def after_fork(self) -> None:
        """In a child process: nobody waits yet."""
        super().after_fork()
        self._used: dict[Watched, float] = {}
        """When somebody last waited for a session."""
        self._rows: dict[str, Watched] = {}
        """By which others know it."""
        self._ends: dict[Watched, int] = {}
        """Where the logs ended when they were last asked for."""
        self._renew_at = 0.0
        self._id = uuid.uuid4().hex
        self._news: dict[Watched, int] = {}
        """How often something was heard of a session."""
        self._told: dict[Watched, list[Callable[[], None]]] = {}
        """Who is called when something is heard."""
        self._inboxes: dict[str, NoticeInbox] = {}
        """Those who listen to what is being said, by the names they go by."""
        self._has_said = False

    @property
    def watched(self) -> set[Watched]:
        """Of which it hears."""
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
        """Until something is heard of that session, or it is over, or so long."""
        with self._changed:
            what = self._use(leases, num)
            counted = self._news.get(what, 0)
            self._changed.wait_for(
                lambda: self._news.get(what, 0) != counted or self._is_over or is_over(), timeout=seconds
            )

    def subscribe(self, leases: Leases, num: int, tell: Callable[[], None]) -> Callable[[], None]:
        """Have that called when something is heard of a session, until what this returns is called."""
        with self._changed:
            what = self._use(leases, num)
            self._told.setdefault(what, []).append(tell)

        def stop() -> None:
            with self._changed:
                listeners = self._told.get(what, [])
                if tell in listeners:
                    listeners.remove(tell)
                if not listeners:
                    self._told.pop(what, None)

        return stop

    def hear(self, leases: Leases, num: int) -> NoticeInbox:
        """What is being said in that session, from now on."""
        with self._changed:
            inbox = NoticeInbox(self._use(leases, num), self._leave)
            self._inboxes[inbox.name] = inbox
        return inbox

    def _leave(self, inbox: NoticeInbox) -> None:
        with self._changed:
            self._inboxes = {name: one for name, one in self._inboxes.items() if one is not inbox}

    def stir(self, tenant: int, num: int) -> None:
        """Have everybody who waits for that session look whether it is over."""
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._told.get(Watched(tenant, num), ()))
        for tell in listeners:
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
            needed = self._told.keys() | {inbox.what for inbox in self._inboxes.values()}
            for what in [what for what, used in self._used.items() if used < limit and what not in needed]:
                self._forget(what)
            self._begin_again()
            wanted = {f"{watch_name(what.num)} {self._id}": what for what in self._used}
            wanted |= {f"{watch_name(inbox.what.num)} {name}": inbox.what for name, inbox in self._inboxes.items()}
        try:
            if connection.is_pooled:
                self._ask(connection, set(wanted.values()))
            else:
                self._listen(connection, wanted)
        except (NotFound, psycopg.errors.InsufficientPrivilege):
            self._give_up(connection.tenant)

    def _give_up(self, tenant: str) -> None:
        """That tenant is no more: who waits for its sessions finds out when he looks."""
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
            self._tell(news)
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
        self._tell({wanted[name] for name in new})  # what came before we listened, nobody told us
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
            self._tell({Watched(tenant, int(payload))})
            return
        name, _, frame = payload.partition(" ")
        with self._changed:
            inbox = self._inboxes.get(name)
        if inbox is not None and inbox.what.tenant == tenant:
            inbox.put(frame.encode())
            self._tell({inbox.what})

    def _begin_again(self) -> None:
        """With the lock: an inbox that lost something goes by another name, so that it is told all of it anew."""
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

    def _tell(self, heard: set[Watched]) -> None:
        if heard:
            with self._changed:
                for what in heard & self._used.keys():
                    self._news[what] = self._news.get(what, 0) + 1
                self._changed.notify_all()
                listeners = [tell for what in heard for tell in self._told.get(what, ())]
            for tell in listeners:
                tell()

    def _lost(self) -> None:
        self._rows, self._renew_at = {}, 0.0
        with self._changed:
            for inbox in self._inboxes.values():
                inbox.lose()


class Teller(BackgroundThread):
    """Tells those who watch what this process wrote, after it was committed."""

    def after_fork(self) -> None:
        """In a child process: nobody waits yet."""
        super().after_fork()
        self._marked: set[Watched] = set()

    def mark(self, leases: Leases, num: int) -> None:
        """Something was written to a session that somebody watches."""
        with self._changed:
            self._marked.add(self._watched_by(leases, num))
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
        for tenant, nums in by_tenant(marked):
            try:
                channel = self._as(connection, tenant).channel(connection)
            except NotFound:
                continue  # the tenant was dropped
            connection.execute(_TELL, (channel, nums))
        time.sleep(_PAUSE_S)

    def _lost(self) -> None:
        pass  # what could not be told is found by those who look

    def _end(self, connection: Connection) -> None:
        pass


def _names(rows: dict[str, Watched], wanted: Iterable[str]) -> list[tuple[int, list[str]]]:
    names: dict[int, list[str]] = {}
    for name in wanted:
        names.setdefault(rows[name].tenant, []).append(name)
    return list(names.items())


class ServerThreads:
    """What a process has once for a server, whatever number of tenants it serves there."""

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

    def stir(self, num: int) -> None:
        """See `Listener.stir`."""
        self.listener.stir(self.leases.tenant, num)

    def mark(self, num: int) -> None:
        """See `Teller.mark`."""
        self.teller.mark(self.leases, num)

    def hear(self, num: int) -> NoticeInbox | None:
        """See `Listener.hear`; None where nobody can listen."""
        connections = self.leases.pool.connections
        return None if connections.is_pooled else self.listener.hear(self.leases, num)

    def speak(self, num: int, text: LiveText) -> Callable[[], None]:
        """See `Broadcasts.speak`."""
        return self.broadcast.speak(self.leases, num, text)
