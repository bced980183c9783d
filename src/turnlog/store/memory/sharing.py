"""Many keep blobs together, or one collects alone."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Sharing:
    """What the lock file of blobs is for the file store: many together, or one alone, who may do both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._together = 0
        self._alone: int | None = None

    @contextmanager
    def together(self) -> Generator[None]:
        """Nobody is alone meanwhile, except this thread itself."""
        with self._changed:
            self._changed.wait_for(lambda: self._alone in (None, threading.get_ident()))
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
            self._changed.wait_for(lambda: self._alone is None and not self._together)
            self._alone = threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()
