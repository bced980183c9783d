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


class Threads:
    """As many as are needed, up to a few."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="turnlog")
        self.is_closed = False

    async def run(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """What it returns, when it does. `Invalid` once they are closed."""
        if self.is_closed:
            raise Invalid(f"this {self._what} is closed", hint="open it again")
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: call(*args, **kwargs))

    def close(self) -> None:
        """Take no more; what has begun goes on."""
        self.is_closed = True
        self._pool.shutdown(wait=False)
