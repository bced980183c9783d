"""A thread of the store that has a connection of its own, once for all tenants of a server."""

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
"""Before it asks a server again that was away."""


class Watched(NamedTuple):
    """A session of a tenant."""

    tenant: int
    num: int


def by_tenant(those: Iterable[Watched]) -> list[tuple[int, list[int]]]:
    """The sessions of each."""
    return [(tenant, [what.num for what in group]) for tenant, group in groupby(sorted(those), lambda one: one.tenant)]


class BackgroundThread(ABC):
    """A thread with a connection, there as long as it has something to do."""

    def __init__(self, connections: Connections, name: str) -> None:
        self._connections = connections
        self._name = name
        self._tenants: dict[int, Leases] = {}
        """For whom it has, or had, something to do."""
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

    def _watched_by(self, leases: Leases, num: int) -> Watched:
        self._tenants[leases.tenant] = leases
        return Watched(leases.tenant, num)

    def _as(self, connection: Connection, tenant: int) -> Leases:
        """From now on, that tenant asks on this connection."""
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
                    # The server is away. Those who wait look for themselves; we begin anew.
                    if connection is not None:
                        connection.close()
                    connection = None
                    self._on_disconnect()
                    time.sleep(_AGAIN_S)
            if connection is not None:
                self._end(connection)
        except psycopg.Error:
            pass  # what is left is not renewed
        finally:
            if connection is not None:
                connection.close()
            with self._changed:
                if self._thread is threading.current_thread():  # something is wrong: who comes next begins anew
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
