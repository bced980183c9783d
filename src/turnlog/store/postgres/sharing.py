"""Many keep blobs together, or one collects alone: across threads by counting, across machines by leases."""

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
        self._together = 0
        self._alone: int | None = None
        self._is_locking = False
        self._lease: Lease | None = None

    def after_fork(self) -> None:
        """In a child process: the lock is the parent's."""
        self._begin()

    def alone_in(self, connection: Connection) -> None:
        """Inside a transaction: nobody keeps blobs until it ends, or this raises."""
        if self._lease is None or self._alone is None:
            raise Unavailable("nobody holds the lock of the blobs", hint="take it before you collect")
        if not self._lease.renew(connection):
            raise Unavailable(
                "somebody else took over the blobs while this process did not answer",
                hint="collect again: nothing was removed that is needed",
            )

    @contextmanager
    def together(self) -> Generator[None]:
        """Nobody is alone meanwhile, except this thread itself."""
        me = threading.get_ident()
        with self._changed:
            self._wait_for(lambda: self._alone in (None, me) and not self._is_locking)
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
            self._wait_for(lambda: self._alone is None and not self._together and not self._is_locking)
            self._is_locking = True
        self._enter(shared=False)
        try:
            yield
        finally:
            with self._changed:
                self._is_locking = True
                self._alone = None
            self._leave(shared=False)

    def _wait_for(self, is_free: Callable[[], bool]) -> None:
        if not self._changed.wait_for(is_free, timeout=self.limit_s):
            raise _busy("another thread of this process", self.limit_s)

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
                self._leases.kept = self._lease
            else:
                self._alone = threading.get_ident()
            self._changed.notify_all()

    def _lock(self, *, shared: bool) -> None:
        lease = Lease(self._leases, "blobs", together=shared)

        def job(connection: Connection, again: bool) -> str | int:
            del again
            try:
                who = lease.take(connection)
            except READ_ONLY:
                if not shared:
                    raise
                who = None  # a standby cannot take leases and needs none: collection runs on the primary
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
        self._leases.keep(lease)

    def _leave(self, *, shared: bool) -> None:
        lease, self._lease = self._lease, None
        try:
            if lease is not None:
                self._leases.kept = None
                self._leases.leave(lease)
                if not self._drop(lease) and shared:
                    # That is fine as long as nobody collected anything.
                    now = self._pool.run("looking after the blobs", lambda one, _: self._leases.collections(one))
                    if now != lease.collections:
                        raise lost()
        finally:
            with self._changed:
                self._is_locking = False
                self._changed.notify_all()

    def _drop(self, lease: Lease) -> bool:
        def job(connection: Connection, again: bool) -> bool:
            try:
                return lease.drop(connection) and not again
            except READ_ONLY:
                return False

        try:
            return self._pool.run("letting go of the blobs", job)
        except TurnlogError:
            return False


def _busy(who: str, seconds: float) -> Unavailable:
    return Unavailable(
        f"the blobs were held by {who} for {seconds:g} seconds", hint="see what it does; a retry is safe"
    )
