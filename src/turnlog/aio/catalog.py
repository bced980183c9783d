"""The catalog for code with an event loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from turnlog import catalog as blocking
from turnlog.aio.closing import Closing
from turnlog.aio.threads import Threads
from turnlog.errors import Invalid
from turnlog.session import Home

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _call(
    method: Callable[Concatenate[blocking.Catalog, _P], _R],
) -> Callable[Concatenate[Catalog, _P], Coroutine[Any, Any, _R]]:
    async def call(self: Catalog, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        catalog, threads = self._catalog, self._threads  # pyright: ignore[reportPrivateUsage]
        return await threads.run(lambda: method(catalog(), *args, **kwargs))

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class Catalog(Closing):
    """See `turnlog.catalog.Catalog`: the same questions, on threads, answered one after the other."""

    def __init__(self, location: str | os.PathLike[str] | Home | None = None, **options: Any) -> None:
        self._threads = Threads("catalog")
        self._location = location
        self._options = options
        self._mutex = threading.Lock()
        self._blocking: blocking.Catalog | None = None
        self._is_closing = self._is_closed = False

    def _catalog(self) -> blocking.Catalog:
        """The blocking catalog, opened on the thread of the first question, because that reads the disk."""
        with self._mutex:
            if self._is_closed:
                raise Invalid("this catalog is closed", hint="open it again")
            if self._blocking is None:
                self._blocking = blocking.Catalog(self._location, **self._options)
            return self._blocking

    async def close(self) -> None:
        """See `turnlog.catalog.Catalog.close`."""
        if self._is_closing:
            return
        self._is_closing = True
        try:
            await self._threads.run(self._close)
        finally:
            self._threads.close()

    def _close(self) -> None:
        with self._mutex:  # the first question may be opening it just now
            self._is_closed = True
            if self._blocking is not None:
                self._blocking.close()

    cards = _call(blocking.Catalog.cards)
    lines = _call(blocking.Catalog.lines)
    find = _call(blocking.Catalog.find)
    ids = _call(blocking.Catalog.ids)
    standing = _call(blocking.Catalog.standing)
    complete = _call(blocking.Catalog.complete)
    search = _call(blocking.Catalog.search)
    found = _call(blocking.Catalog.found)
    usage = _call(blocking.Catalog.usage)
    ask = _call(blocking.Catalog.ask)
    gone = _call(blocking.Catalog.gone)
    going = _call(blocking.Catalog.going)
    refresh = _call(blocking.Catalog.refresh)
    sync = _call(blocking.Catalog.sync)
    rebuild = _call(blocking.Catalog.rebuild)
    forget_purged = _call(blocking.Catalog.forget_purged)
