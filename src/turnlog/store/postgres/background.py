"""Background threads with a connection of their own, one of each kind for all tenants of a server."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import psycopg

from turnlog.store.forked import renew_after_fork
from turnlog.store.postgres.lease import Leases
from turnlog.store.postgres.pool import Connection, Connections

_AGAIN_S = 0.5
"""The pause before a retry when the server was unreachable."""


class Watched(NamedTuple):
    """A session of a tenant."""

    tenant: int
    num: int


def by_tenant(sessions: Iterable[Watched]) -> list[tuple[int, list[int]]]:
    """Return the numbers of the sessions, grouped by tenant."""
    groups = groupby(sorted(sessions), lambda watched: watched.tenant)
    return [(tenant, [watched.num for watched in group]) for tenant, group in groups]


class BackgroundThread(ABC):
    """A thread with a connection, which runs as long as it has work."""

    def __init__(self, connections: Connections, name: str) -> None:
        self._connections = connections
        self._name = name
        self._tenants: dict[int, Leases] = {}
        """The tenants for which there is or was work."""
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Reset in a child process: there is no thread."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False

    def _wake(self) -> None:
        """With the lock: start the thread if necessary, and wake it."""
        if self._thread is None and not self._is_over:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _watched_by(self, leases: Leases, num: int) -> Watched:
        self._tenants[leases.tenant] = leases
        return Watched(leases.tenant, num)

    def _as(self, connection: Connection, tenant: int) -> Leases:
        """Use the connection for that tenant from now on."""
        leases = self._tenants[tenant]
        connection.tenant = leases.pool.tenant
        return leases

    def _run(self) -> None:
        connection: Connection | None = None
        try:
            while self._has_work():
                try:
                    connection = connection or self._connections.connect()
                    self._work(connection)
                except psycopg.Error:
                    # The server is unreachable. Waiting readers poll; this thread retries.
                    if connection is not None:
                        connection.close()
                    connection = None
                    self._on_disconnect()
                    time.sleep(_AGAIN_S)
            if connection is not None:
                self._end(connection)
        except psycopg.Error:
            pass  # rows that remain are not renewed, so they expire
        finally:
            if connection is not None:
                connection.close()
            with self._changed:
                if self._thread is threading.current_thread():  # after an error: the next work starts a new thread
                    self._thread = None

    @abstractmethod
    def _has_work(self) -> bool: ...

    @abstractmethod
    def _work(self, connection: Connection) -> None: ...

    @abstractmethod
    def _on_disconnect(self) -> None: ...

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
