"""Where the blocking calls of one object run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from turnlog.aio.pool import Pool
from turnlog.errors import Invalid

_P = ParamSpec("_P")
_R = TypeVar("_R")
_THREADS = 8
_LONG = 8


class Threads:
    """As many as are needed, up to a few; and others for what takes long, so that nobody who appends waits for it."""

    def __init__(self, what: str, *, of: Threads | None = None) -> None:
        self._what = what
        self._of = of
        self._is_closed = False
        if of is None:
            self._pool, self._long = Pool(_THREADS, "turnlog"), Pool(_LONG, "turnlog-long")
            for pool in (self._pool, self._long):  # of an object that was forgotten, no thread is left either
                weakref.finalize(self, pool.close).atexit = False
        else:
            self._pool, self._long = of._pool, of._long

    @property
    def is_closed(self) -> bool:
        """Whether they take no more."""
        return self._is_closed or (self._of is not None and self._of.is_closed)

    def shared(self) -> Threads:
        """The same ones for somebody else, who ends none by closing."""
        return Threads(self._what, of=self)

    def run(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Coroutine[Any, Any, _R]:
        """What it returns, when it does. `Invalid` once they are closed."""
        return self._on(self._pool, lambda: call(*args, **kwargs))

    def run_long(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Coroutine[Any, Any, _R]:
        """The same for what goes through files, or through whole logs."""
        return self._on(self._long, lambda: call(*args, **kwargs))

    async def _on(self, pool: Pool, call: Callable[[], _R]) -> _R:
        if self.is_closed or (future := pool.submit(call)) is None:
            raise Invalid(f"this {self._what} is closed", hint="open it again")
        return await future

    def close(self) -> None:
        """Take no more; what has begun goes on."""
        self._is_closed = True
        if self._of is None:
            self._pool.close()
            self._long.close()
