"""Many keep blobs together, or one collects alone: across threads by counting, across machines by an advisory lock."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import LiteralString

import psycopg

from turnlog.errors import Unavailable
from turnlog.store.postgres.pool import Connection, Pool, renew_after_fork

_SPACE = 0x746C6F67
"""The first half of the key of the advisory lock; the tenant is the second."""
_GENERATION = "select collected from turnlog.tenant where num = %s"


class Sharing:
    """The lock of one tenant's blobs. Threads of one process share one connection that holds it."""

    def __init__(self, pool: Pool, tenant: int) -> None:
        self._pool = pool
        self._tenant = tenant
        self._begin()
        renew_after_fork(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._together = 0
        self._alone: int | None = None
        self._is_locking = False
        self._holder: Connection | None = None
        self._generation = 0

    def after_fork(self) -> None:
        """In a child process: the lock is the parent's."""
        self._begin()

    @property
    def holder(self) -> Connection:
        """The connection that holds the lock: what may only be done under it is done there."""
        if self._holder is None:
            raise Unavailable("nobody holds the lock of the blobs", hint="collect inside exclusively()")
        return self._holder

    @contextmanager
    def together(self) -> Generator[None]:
        """Nobody is alone meanwhile, except this thread itself."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._alone in (None, me) and not self._is_locking)
            within = self._alone == me
            is_first = not within and not self._together
            if is_first:
                self._is_locking = True
            elif not within:
                self._together += 1
        if is_first:
            self._enter(shared=True)
        try:
            yield
        finally:
            if not within:
                self._leave_together()

    def _leave_together(self) -> None:
        with self._changed:
            self._together -= 1
            is_last = not self._together
            if is_last:
                self._is_locking = True
        if is_last:
            self._leave(shared=True)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Nobody else is here."""
        with self._changed:
            self._changed.wait_for(lambda: self._alone is None and not self._together and not self._is_locking)
            self._is_locking = True
        self._enter(shared=False)
        try:
            yield
        finally:
            with self._changed:
                self._is_locking = True
                self._alone = None
            self._leave(shared=False)

    def _enter(self, *, shared: bool) -> None:
        try:
            self._lock(shared=shared)
        except BaseException:
            with self._changed:
                self._is_locking = False
                self._changed.notify_all()
            raise
        with self._changed:
            self._is_locking = False
            if shared:
                self._together += 1
            else:
                self._alone = threading.get_ident()
            self._changed.notify_all()

    def _lock(self, *, shared: bool) -> None:
        """Ask again and again, because each question has a time limit and the wait has none."""
        query = "select pg_try_advisory_lock_shared(%s, %s)" if shared else "select pg_try_advisory_lock(%s, %s)"
        pause = 0.005
        while True:
            connection, got = self._pool.own("locking the blobs", lambda connection: self._try(connection, query))
            if got is not None:
                self._holder, self._generation = connection, got
                return
            self._pool.give(connection)
            time.sleep(pause)
            pause = min(2 * pause, 0.1)

    def _try(self, connection: Connection, query: LiteralString) -> int | None:
        row = connection.execute(query, (_SPACE, self._tenant)).fetchone()
        return self._collected(connection) if row is not None and row[0] else None

    def _collected(self, connection: Connection) -> int:
        row = connection.execute(_GENERATION, (self._tenant,)).fetchone()
        return row[0] if row is not None else 0

    def _leave(self, *, shared: bool) -> None:
        connection, self._holder = self._holder, None
        lost = False
        try:
            if connection is not None:
                query = "select pg_advisory_unlock_shared(%s, %s)" if shared else "select pg_advisory_unlock(%s, %s)"
                try:
                    connection.execute(query, (_SPACE, self._tenant))
                    self._pool.give(connection)
                except psycopg.Error:
                    connection.close()
                    lost = True
            if lost and shared:
                self._check()
        finally:
            with self._changed:
                self._is_locking = False
                self._changed.notify_all()

    def _check(self) -> None:
        """The lock went away with its connection. That is fine as long as nobody collected anything."""
        rows = self._pool.rows("looking after the blobs", _GENERATION, (self._tenant,))
        if rows and rows[0][0] != self._generation:
            raise Unavailable(
                "the connection broke while blobs were kept, and somebody collected blobs meanwhile",
                hint="do it again: what it refers to may be gone",
            )
