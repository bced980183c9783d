"""The threads on which the blocking calls of one object run."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from turnlog.aio.pool import Pool
from turnlog.errors import Invalid

_P = ParamSpec("_P")
_R = TypeVar("_R")
_THREADS = 8
_LONG_THREADS = 8


class Threads:
    """Two pools: one for short calls such as appends, and one for those that read whole logs or files."""

    def __init__(self, owner_kind: str, *, parent: Threads | None = None) -> None:
        self._owner_kind = owner_kind
        self._parent = parent
        self._is_closed = False
        if parent is None:
            self._short, self._long = Pool(_THREADS, "turnlog"), Pool(_LONG_THREADS, "turnlog-long")
            for pool in (self._short, self._long):  # when the owner is garbage, its threads end
                weakref.finalize(self, pool.close).atexit = False
        else:
            self._short, self._long = parent._short, parent._long

    @property
    def is_closed(self) -> bool:
        """Whether further calls are refused."""
        return self._is_closed or (self._parent is not None and self._parent.is_closed)

    def shared(self) -> Threads:
        """The same threads for another owner. Closing them refuses the calls of that owner, and ends no thread."""
        return Threads(self._owner_kind, parent=self)

    def run(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Coroutine[Any, Any, _R]:
        """Run a short call on a thread; `Invalid` once closed."""
        return self._submit(self._short, lambda: call(*args, **kwargs))

    def run_long(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Coroutine[Any, Any, _R]:
        """Run a call that reads whole logs or files; `Invalid` once closed."""
        return self._submit(self._long, lambda: call(*args, **kwargs))

    async def run_or_undo(self, call: Callable[[], _R], undo: Callable[[_R], object]) -> _R:
        """Run a long call that opens something. If the caller is cancelled, `undo` gets the result, on a thread.

        A cancelled caller waits for that, unless it is cancelled again.
        """
        mutex, is_abandoned, results = threading.Lock(), threading.Event(), list[_R]()

        def open_or_undo() -> None:
            if is_abandoned.is_set():
                return
            result = call()
            with mutex:
                if not is_abandoned.is_set():
                    results.append(result)
                    return
            undo(result)

        opening = asyncio.ensure_future(self.run_long(open_or_undo))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            with mutex:
                is_abandoned.set()
            with suppress(Exception, asyncio.CancelledError):
                await (self.run_long(undo, results[0]) if results else opening)
            raise
        return results[0]

    async def _submit(self, pool: Pool, call: Callable[[], _R]) -> _R:
        if self.is_closed or (future := pool.submit(call)) is None:
            raise Invalid(f"this {self._owner_kind} is closed", hint="open it again")
        return await future

    def close(self) -> None:
        """Refuse further calls; those that were submitted are finished."""
        self._is_closed = True
        if self._parent is None:
            self._short.close()
            self._long.close()
