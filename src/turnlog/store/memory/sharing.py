"""Many keep blobs together, or one collects alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from turnlog.errors import Unavailable

_WAIT_S = 60.0


class BlobLock:
    """What the lock file of blobs is for the file store: many together, or one alone, who may do both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._together = 0
        self._alone: int | None = None

    def _wait_until(self, is_free: Callable[[], bool]) -> None:
        if not self._changed.wait_for(is_free, timeout=_WAIT_S):
            raise Unavailable(f"another thread has held the blobs for {_WAIT_S:.0f} s", hint="end it, and try again")

    @contextmanager
    def together(self) -> Generator[None]:
        """Nobody is alone meanwhile, except this thread itself."""
        with self._changed:
            self._wait_until(lambda: self._alone in (None, threading.get_ident()))
            self._together += 1
        try:
            yield
        finally:
            with self._changed:
                self._together -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Generator[None]:
        """Nobody else is here."""
        with self._changed:
            self._wait_until(lambda: self._alone is None and not self._together)
            self._alone = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()
