"""The lock of the blobs, shared or exclusive: between threads by counting, between machines by leases."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from turnlog.errors import TurnlogError, Unavailable
from turnlog.store.forked import renew_after_fork
from turnlog.store.postgres.lease import LIMIT_S, READ_ONLY, Lease, Leases, lost
from turnlog.store.postgres.pool import Connection


class BlobLease:
    """The lock of one tenant's blobs. Threads of one process share one lease."""

    limit_s = LIMIT_S

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._pool = leases.pool
        self._begin()
        renew_after_fork(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._sharers = 0
        """The number of shared holds by threads of this process."""
        self._owner: int | None = None
        """The thread that holds the lock exclusively."""
        self._locking: int | None = None
        """The thread that is taking or releasing the lease."""
        self._lease: Lease | None = None

    def after_fork(self) -> None:
        """Reset in a child process: the lock is the parent's."""
        self._begin()

    def renew_exclusive_in(self, connection: Connection) -> None:
        """Inside a transaction: renew the exclusive lock, so that no one else adds blobs until it ends, or raise."""
        if self._lease is None or self._owner is None:
            raise Unavailable("the blobs are not locked", hint="lock them before you collect")
        if not self._lease.renew(connection):
            raise Unavailable(
                "another process took over the blobs while this one did not answer",
                hint="collect again: nothing was removed that is needed",
            )

    @contextmanager
    def shared(self) -> Generator[None]:
        """Hold the lock shared: no other thread or process holds it exclusively meanwhile."""
        me = threading.get_ident()
        with self._locking_ends():
            with self._changed:
                self._wait_for(lambda: self._owner in (None, me) and self._locking is None)
                within = self._owner == me
                is_first = not within and not self._sharers
                if is_first:
                    self._locking = me
                elif not within:
                    self._sharers += 1
            if is_first:
                self._enter(shared=True)
        try:
            yield
        finally:
            if not within:
                self._leave_shared()

    def _leave_shared(self) -> None:
        with self._locking_ends():
            with self._changed:
                self._sharers -= 1
                is_last = not self._sharers
                if is_last:
                    self._locking = threading.get_ident()
            if is_last:
                self._leave(shared=True)

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Hold the lock exclusively."""
        with self._locking_ends():
            with self._changed:
                self._wait_for(lambda: self._owner is None and not self._sharers and self._locking is None)
                self._locking = threading.get_ident()
            self._enter(shared=False)
        try:
            yield
        finally:
            with self._locking_ends():
                with self._changed:
                    self._locking = threading.get_ident()
                    self._owner = None
                self._leave(shared=False)

    @contextmanager
    def _locking_ends(self) -> Generator[None]:
        """Let other threads go on afterwards, wherever an interrupt occurs."""
        try:
            yield
        finally:
            with self._changed:
                if self._locking == threading.get_ident():
                    self._locking = None
                    self._changed.notify_all()

    def _wait_for(self, is_free: Callable[[], bool]) -> None:
        if not self._changed.wait_for(is_free, timeout=self.limit_s):
            raise _busy("another thread of this process", self.limit_s)

    def _enter(self, *, shared: bool) -> None:
        self._lock(shared=shared)
        with self._changed:
            if shared:
                self._sharers += 1
                self._leases.kept = self._lease
            else:
                self._owner = threading.get_ident()

    def _lock(self, *, shared: bool) -> None:
        lease = Lease(self._leases, "blobs", shared=shared)

        def job(connection: Connection, again: bool) -> str | int:
            del again
            try:
                who = lease.take(connection)
            except READ_ONLY:
                if not shared:
                    raise
                who = None  # a standby cannot take leases and needs none: collections run on the primary
            return self._leases.collections(connection) if who is None else who

        deadline, pause = time.monotonic() + self.limit_s, 0.005
        while True:
            locked = self._pool.run("locking the blobs", job)
            if isinstance(locked, int):
                break
            if time.monotonic() + pause > deadline:
                raise _busy(locked, self.limit_s)
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        lease.collections = locked
        self._lease = lease
        self._leases.start_renewing(lease)

    def _leave(self, *, shared: bool) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            self._leases.kept = None
            self._leases.stop_renewing(lease)
            if not self._drop(lease) and shared:
                # That does no harm if no blobs were collected.
                now = self._pool.run("checking for collections", lambda one, _: self._leases.collections(one))
                if now != lease.collections:
                    raise lost()

    def _drop(self, lease: Lease) -> bool:
        def job(connection: Connection, again: bool) -> bool:
            try:
                return lease.drop(connection) and not again
            except READ_ONLY:
                return False

        try:
            return self._pool.run("releasing the lock of the blobs", job)
        except TurnlogError:
            return False


def _busy(who: str, seconds: float) -> Unavailable:
    return Unavailable(
        f"the blobs were held by {who} for {seconds:g} seconds", hint="see what it does; a retry is safe"
    )
