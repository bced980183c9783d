"""Waking those who follow a session. Only a favour: whoever waits looks again by himself before long.

A watcher renews a row with the session's number as long as it watches. An append looks for it in its own statement,
and so learns for nothing whether anybody does. If so, a thread of the writer tells them after the commit, for all
sessions at once and not too often: a notification inside the transaction would make all commits of the database wait
for each other. The channel has a name that only the tenant knows.
"""

from __future__ import annotations

import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable

import psycopg

from turnlog.store.postgres.lease import TERM_S, Leases
from turnlog.store.postgres.pool import Connection, renew_after_fork

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


class _Worker(ABC):
    """A thread with a connection, there as long as it has something to do."""

    def __init__(self, leases: Leases, name: str) -> None:
        self._leases = leases
        self._pool = leases.pool
        self._name = name
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process, as at the beginning: there is no thread."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False

    def _wake(self) -> None:
        """With the lock: see to it that the thread is there, and looks."""
        if self._thread is None and not self._is_over:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        connection: Connection | None = None
        try:
            while self._goes_on():
                try:
                    connection = connection or self._pool.connect()
                    self._work(connection)
                except psycopg.Error:
                    # The server is away. Those who wait look for themselves; we begin anew.
                    if connection is not None:
                        connection.close()
                    connection = None
                    self._lost()
                    time.sleep(10 * _PAUSE_S)
            if connection is not None:
                self._end(connection)
        except psycopg.Error:
            pass  # what is left is not renewed
        finally:
            if connection is not None:
                connection.close()

    @abstractmethod
    def _goes_on(self) -> bool: ...

    @abstractmethod
    def _work(self, connection: Connection) -> None: ...

    @abstractmethod
    def _lost(self) -> None: ...

    @abstractmethod
    def _end(self, connection: Connection) -> None: ...

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()


class Listener(_Worker):
    """Knows who in this process waits for which session."""

    def after_fork(self) -> None:
        """See above."""
        super().after_fork()
        self._used: dict[int, float] = {}
        """When somebody last waited for a session."""
        self._watched: set[int] = set()
        self._renew_at = 0.0
        self._id = uuid.uuid4().hex
        self._news: dict[int, int] = {}
        """How often something was heard of a session."""
        self._told: dict[int, list[Callable[[], None]]] = {}
        """Who is called when something is heard."""

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
            for num in [num for num, used in self._used.items() if used < limit and num not in self._told]:
                del self._used[num]
                self._news.pop(num, None)
            wanted = set(self._used)
        if wanted and not self._watched:
            connection.execute(f"listen {self._leases.channel(connection)}".encode(), prepare=False)
        new, now = wanted - self._watched, time.monotonic()
        if new or now > self._renew_at:
            connection.execute(_WATCH, (self._leases.tenant, TERM_S, self._names(wanted)))
            self._renew_at = now + TERM_S / 3
        gone, self._watched = self._watched - wanted, wanted
        self._unwatch(connection, gone)
        self._tell(new)  # what came before we listened, nobody told us
        for notice in connection.notifies(timeout=_PAUSE_S, stop_after=1):
            if notice.payload.isdecimal():
                self._tell({int(notice.payload)})

    def _names(self, nums: set[int]) -> list[str]:
        return [f"{watch_name(num)} {self._id}" for num in nums]

    def _unwatch(self, connection: Connection, nums: set[int]) -> None:
        if nums:
            connection.execute("select turnlog.drop_leases(%s::text[])", (self._names(nums),))

    def _end(self, connection: Connection) -> None:
        watched, self._watched = self._watched, set()
        self._unwatch(connection, watched)

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
        self._watched.clear()


class Teller(_Worker):
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
    """Both."""

    def __init__(self, leases: Leases) -> None:
        self.leases = leases
        self.listener = Listener(leases, "turnlog listener")
        self.teller = Teller(leases, "turnlog teller")

    def close(self) -> None:
        """End the threads."""
        self.listener.close()
        self.teller.close()
