"""Where the blocking calls of one object run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

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
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="turnlog") if of is None else of._pool
        self._long = ThreadPoolExecutor(_LONG, thread_name_prefix="turnlog-long") if of is None else of._long
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether they take no more."""
        return self._is_closed or (self._of is not None and self._of.is_closed)

    def shared(self) -> Threads:
        """The same ones for somebody else, who ends none by closing."""
        return Threads(self._what, of=self)

    async def run(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """What it returns, when it does. `Invalid` once they are closed."""
        return await self._on(self._pool, lambda: call(*args, **kwargs))

    async def run_long(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """The same for what goes through files, or through whole logs."""
        return await self._on(self._long, lambda: call(*args, **kwargs))

    async def _on(self, pool: ThreadPoolExecutor, call: Callable[[], _R]) -> _R:
        if self.is_closed:
            raise Invalid(f"this {self._what} is closed", hint="open it again")
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    def close(self) -> None:
        """Take no more; what has begun goes on."""
        self._is_closed = True
        if self._of is None:
            self._pool.shutdown(wait=False)
            self._long.shutdown(wait=False)
