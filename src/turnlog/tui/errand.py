"""Runs slow work on a thread, one piece after the other; work that nobody waits for is dropped."""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from turnlog.catalog.waiter import GivenUp, Waiter
from turnlog.errors import TurnlogError

_T = TypeVar("_T")
Tell = Callable[[Callable[[], None]], object]
"""Has something called where the screens are drawn."""


class Errand(NamedTuple):
    """Something to be done, and who is told what came of it."""

    kind: str
    work: Callable[[], Any]
    then: Callable[[Any], None]
    failed: Callable[[Exception], None]
    waiter: Waiter


class Errands:
    """One thread. Of each kind only the newest counts: those that wait are dropped, and the one under way is given up.

    Errands without a kind are all done, in order, up to the end: see `close` and `finish`.
    """

    def __init__(self, tell: Tell, name: str) -> None:
        self._tell = tell
        self._waiting: deque[Errand] = deque()
        self._under_way: Errand | None = None
        self._has_more = threading.Condition()  # its lock may be taken again
        self._is_over = False
        # As a rule nobody waits for it at the end: what it reads is never half written.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(
        self, work: Callable[[], _T], then: Callable[[_T], None], failed: Callable[[Exception], None], kind: str = ""
    ) -> None:
        """Have it done as soon as what was asked before is."""
        with self._has_more:
            if self._is_over:
                return
            if kind:
                self.give_up(kind)
            self._waiting.append(Errand(kind, work, then, failed, Waiter()))
            self._has_more.notify()

    def give_up(self, kind: str) -> None:
        """Nobody waits for errands of that kind any more."""
        with self._has_more:
            self._waiting = deque(one for one in self._waiting if one.kind != kind)
            if self._under_way is not None and self._under_way.kind == kind:
                self._under_way.waiter.leave()

    def close(self) -> None:
        """Nothing more is done."""
        with self._has_more:
            self._is_over = True
            self._waiting.clear()
            if self._under_way is not None:
                self._under_way.waiter.leave()
            self._has_more.notify()

    def finish(self) -> None:
        """Everything that was asked for is done to its end before this returns; nothing more can be asked."""
        with self._has_more:
            self._is_over = True
            self._has_more.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._has_more:
                while not self._waiting and not self._is_over:
                    self._has_more.wait()
                if not self._waiting:
                    return
                errand = self._under_way = self._waiting.popleft()
            callback = _carried_out(errand)
            with self._has_more:
                self._under_way = None
                is_wanted = not errand.waiter.has_left()
            if is_wanted:
                self._tell(callback)


def _carried_out(errand: Errand) -> Callable[[], None]:
    """Do it; returns what is to be called where the screens are drawn."""
    try:
        with errand.waiter.waiting():
            answer = errand.work()
    except GivenUp:
        return lambda: None
    except (TurnlogError, OSError, sqlite3.Error) as error:
        expected: Exception = error
        return lambda: errand.failed(expected)
    except Exception as error:  # a fault of ours: it is raised again where the whole program ends with a report
        fault: Exception = error
        return lambda: _raise(fault)
    return lambda: errand.then(answer)


def _raise(fault: Exception) -> None:
    raise fault
