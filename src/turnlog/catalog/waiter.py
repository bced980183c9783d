"""Cancelling queries: a query that nobody waits for any more is given up.

waiter = Waiter()
with waiter.waiting():          in the thread that asks
    catalog.found("needle")     raises `GivenUp` soon after `waiter.leave()` was called in another one
"""

from __future__ import annotations

from _thread import RLock
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from typing import TypeVar

    _T = TypeVar("_T")

_PAUSE_S = 0.05
_EACH = 64


class GivenUp(Exception):
    """The query was cancelled: nobody waits for the answer any more."""


class Waiter:
    """A cancellation token for queries."""

    def __init__(self) -> None:
        self._has_left = False

    def leave(self) -> None:
        """Cancel the queries of this waiter. Never blocks; may be called from any thread or event loop."""
        self._has_left = True

    def has_left(self) -> bool:
        """Whether the waiter has left."""
        return self._has_left

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Make this the waiter of all queries by this thread or task inside the block."""
        before = _NOW.set(self)
        try:
            yield
        finally:
            _NOW.reset(before)


_NOW: ContextVar[Waiter | None] = ContextVar("waiter", default=None)


def waiter_now() -> Waiter | None:
    """The current waiter; None if the caller cannot cancel."""
    return _NOW.get()


def still_wanted() -> None:
    """Raise `GivenUp` if the current waiter has left."""
    waiter = _NOW.get()
    if waiter is not None and waiter.has_left():
        raise GivenUp


def while_wanted(items: Iterable[_T]) -> Iterator[_T]:
    """Yield the items, and raise `GivenUp` once the current waiter has left."""
    for number, item in enumerate(items):
        if number % _EACH == 0:
            still_wanted()
        yield item


class PatientLock:
    """A re-entrant lock. Waiting for it raises `GivenUp` once the current `Waiter` has left."""

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        if _NOW.get() is None:
            self._lock.acquire()
            return
        while not self._lock.acquire(timeout=_PAUSE_S):
            still_wanted()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
