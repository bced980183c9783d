"""The lock of the blobs: shared for threads that add blobs, exclusive for a collection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from turnlog.errors import Unavailable

_WAIT_S = 60.0


class BlobLock:
    """A shared and exclusive lock, as the lock file of the file store; the exclusive holder may re-enter it shared."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sharers = 0
        """The number of shared holds."""
        self._owner: int | None = None
        """The thread that holds the lock exclusively."""

    def _wait_until(self, is_free: Callable[[], bool]) -> None:
        if not self._changed.wait_for(is_free, timeout=_WAIT_S):
            raise Unavailable(f"another thread has held the blobs for {_WAIT_S:.0f} s", hint="end it, and try again")

    @contextmanager
    def shared(self) -> Generator[None]:
        """Hold the lock shared: no other thread holds it exclusively meanwhile."""
        with self._changed:
            self._wait_until(lambda: self._owner in (None, threading.get_ident()))
            self._sharers += 1
        try:
            yield
        finally:
            with self._changed:
                self._sharers -= 1
                self._changed.notify_all()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Hold the lock exclusively."""
        with self._changed:
            self._wait_until(lambda: self._owner is None and not self._sharers)
            self._owner = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._owner = None
                self._changed.notify_all()
