"""Waking those who follow a session. Only a favour: whoever waits looks again by himself before long.

A watcher holds a shared advisory lock with the session's number, which goes away with its connection. An append
tries the same lock, in its own statement, and so learns for nothing whether anybody watches. If so, a thread of the
writer tells them after the commit, for all sessions at once and not too often: a notification inside the transaction
would make all commits of the database wait for each other.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

import psycopg

from turnlog.store.postgres.pool import Connection, Pool, renew_after_fork

SPACE = 0x746C6F68
"""The first half of the key of the advisory lock; the second is made of the session's number."""
MODULUS = (1 << 31) - 1
_CHANNEL = "turnlog"
_PAUSE_S = 0.05
"""Between two messages of one process, and between two looks of a listener at who wants what."""
_UNUSED_S = 10.0
"""Nobody waits for a session any more, or nobody writes to one that is watched."""
_WATCH = "select pg_try_advisory_lock_shared(%s, %s)"
_UNWATCH = "select pg_advisory_unlock_shared(%s, %s)"
_TELL = "select pg_notify(%s, num::text) from unnest(%s::bigint[]) as num"


class _Worker(ABC):
    """A thread with a connection, there as long as it has something to do."""

    def __init__(self, pool: Pool, name: str) -> None:
        self._pool = pool
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
        finally:
            if connection is not None:
                connection.close()

    @abstractmethod
    def _goes_on(self) -> bool: ...

    @abstractmethod
    def _work(self, connection: Connection) -> None: ...

    @abstractmethod
    def _lost(self) -> None: ...

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
            connection.execute("listen " + _CHANNEL, prepare=False)
        for num in self._watched - wanted:
            connection.execute(_UNWATCH, (SPACE, num % MODULUS))
            self._watched.discard(num)
        heard: set[int] = set()
        for num in wanted - self._watched:
            row = connection.execute(_WATCH, (SPACE, num % MODULUS)).fetchone()
            if row is not None and row[0]:
                self._watched.add(num)
                heard.add(num)  # what came before we listened, nobody told us
        self._tell(heard)
        for notice in connection.notifies(timeout=_PAUSE_S, stop_after=1):
            if notice.payload.isdecimal():
                self._tell({int(notice.payload)})

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
        connection.execute(_TELL, (_CHANNEL, sorted(marked)))
        time.sleep(_PAUSE_S)

    def _lost(self) -> None:
        pass  # what could not be told is found by those who look


class Watch:
    """Both."""

    def __init__(self, pool: Pool) -> None:
        self.listener = Listener(pool, "turnlog listener")
        self.teller = Teller(pool, "turnlog teller")

    def close(self) -> None:
        """End the threads."""
        self.listener.close()
        self.teller.close()
