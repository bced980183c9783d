"""Worker threads for an event loop.

`concurrent.futures` does the same, and its futures chained to those of asyncio cost 60 µs a call: a third of a durable
append (docs/decisions/0080).
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from turnlog.machine.liveobjects import LiveObjects
from turnlog.store.forked import renew_after_fork

_R = TypeVar("_R")
# A plain tuple, because each call makes one: the loop, the future for the result, the call.
_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Pool:
    """Up to `size` threads, each started when no other is idle. Submitted calls are made, even if Python exits."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._is_closed = False
        self._begin_anew()
        _pools.add(self)
        renew_after_fork(self)

    def _begin_anew(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._mutex = threading.Lock()
        # `submit` reserves an idle thread at once: one that is about to wake up must not be counted twice.
        self._idle = 0
        self._backlog = 0
        self._workers: list[threading.Thread] = []

    def after_fork(self) -> None:
        """Begin without threads in a child process: what was submitted is done by the parent."""
        self._begin_anew()

    def submit(self, call: Callable[[], _R]) -> asyncio.Future[_R] | None:
        """Run `call` on a thread and return its future; None if the pool is closed.

        A call that is cancelled before it begins is not made.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_R] = loop.create_future()
        with self._mutex:
            if self._is_closed:
                return None
            if self._idle:
                self._idle -= 1
            elif len(self._workers) < self._size:
                self._start()
            else:
                self._backlog += 1
            self._jobs.put((loop, future, call))
        return future

    def _start(self) -> None:
        # A daemon, or Python would wait for it at its exit before `_finish` can tell it to end.
        worker = threading.Thread(target=self._work, name=f"{self._name}_{len(self._workers)}", daemon=True)
        worker.start()
        self._workers.append(worker)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, call = job
            result, error = None, None
            if not future.cancelled():
                try:
                    result = call()
                except BaseException as caught:
                    error = caught
            with self._mutex:
                if self._backlog:
                    self._backlog -= 1
                else:
                    self._idle += 1
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:  # the loop is closed, so nobody waits any more
                if not loop.is_closed():
                    raise
            del job, loop, future, call, result, error  # an idle thread keeps nothing alive
        self._jobs.put(None)

    def close(self) -> None:
        """Refuse further calls. The threads end when they have done what was submitted."""
        with self._mutex:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(None)

    def join(self) -> None:
        """Wait until the threads have ended."""
        for worker in self._workers:
            worker.join()


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():  # cancelled meanwhile
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):  # which no future takes
        future.set_exception(RuntimeError("a call raised StopIteration"))
    else:
        future.set_exception(error)


_pools: LiveObjects[Pool] = LiveObjects()


@atexit.register
def _finish() -> None:
    """At the exit of Python: finish every call that was submitted."""
    pools = list(_pools)
    for pool in pools:
        pool.close()
    for pool in pools:
        pool.join()
