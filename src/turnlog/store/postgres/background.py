"""A thread of the store that has a connection of its own."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

import psycopg

from turnlog.store.postgres.lease import Leases
from turnlog.store.postgres.pool import Connection, renew_after_fork

_AGAIN_S = 0.5
"""Before it asks a server again that was away."""


class BackgroundThread(ABC):
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
                    time.sleep(_AGAIN_S)
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
