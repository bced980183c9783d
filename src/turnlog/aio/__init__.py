"""The same objects for code with an event loop: every call that may wait for a disk runs on a thread.

    async with turnlog.aio.open() as home:
        s = await home.create(workspace=".", agent="my-agent")
        await s.user("The test is flaky, fix it")

A cancelled `await` does not stop a write that has begun: it is finished on its thread, and the object takes its result.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from turnlog import session as blocking
from turnlog.aio.catalog import Catalog
from turnlog.aio.home import Home
from turnlog.aio.session import ReadOnlySession, Session
from turnlog.aio.threads import Threads
from turnlog.session.opening import Durability
from turnlog.store import Clock

if TYPE_CHECKING:
    from turnlog.session.opening import HomeOptions

__all__ = ["Catalog", "Home", "ReadOnlySession", "Session", "open"]


class _Opening:
    """Returned by `open`: can be awaited, and is an asynchronous context manager."""

    def __init__(self, location: str | os.PathLike[str] | None, options: dict[str, Any]) -> None:
        self._location = location
        self._options = options
        self._home: Home | None = None

    async def _open(self) -> Home:
        threads = Threads("home")
        try:
            home = await threads.run_or_undo(
                lambda: blocking.open_home(self._location, **self._options), blocking.Home.close
            )
        except BaseException:
            threads.close()
            raise
        self._home = Home(home, threads)
        return self._home

    def __await__(self) -> Generator[Any, None, Home]:
        return self._open().__await__()

    async def __aenter__(self) -> Home:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._home is not None:
            await self._home.close()


def open(
    location: str | os.PathLike[str] | None = None,
    *,
    durability: Durability = "fsync",
    clock: Clock | None = None,
    **options: Unpack[HomeOptions],
) -> _Opening:
    """See `turnlog.open`: `async with turnlog.aio.open() as home`, or `home = await turnlog.aio.open()`."""
    return _Opening(location, {"durability": durability, "clock": clock, **options})
