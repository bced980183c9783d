"""Whether anybody still waits for an answer. A question that nobody waits for any more is given up.

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
    """Nobody waits for the answer any more."""


class Waiter:
    """Somebody who waits for answers until he leaves."""

    def __init__(self) -> None:
        self._has_left = False

    def leave(self) -> None:
        """He does not want to know any more. From any thread, also on an event loop: nothing is waited for."""
        self._has_left = True

    def has_left(self) -> bool:
        """Whether he does not wait any more."""
        return self._has_left

    @contextmanager
    def waiting(self) -> Generator[None]:
        """What this thread, or this task, asks inside, it asks for him."""
        before = _NOW.set(self)
        try:
            yield
        finally:
            _NOW.reset(before)


_NOW: ContextVar[Waiter | None] = ContextVar("waiter", default=None)


def waiter_now() -> Waiter | None:
    """Who waits for the answer; None if the caller cannot cancel."""
    return _NOW.get()


def still_wanted() -> None:
    """Raise `GivenUp` if nobody waits for what is being done."""
    waiter = _NOW.get()
    if waiter is not None and waiter.has_left():
        raise GivenUp


def while_wanted(items: Iterable[_T]) -> Iterator[_T]:
    """The same items, as long as somebody waits for what is made of them."""
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
