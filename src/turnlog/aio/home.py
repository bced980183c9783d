"""A home for code with an event loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import tzinfo
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from turnlog import session as blocking
from turnlog.aio.catalog import Catalog
from turnlog.aio.closing import Closing
from turnlog.aio.session import ReadOnlySession, Session
from turnlog.aio.threads import Threads
from turnlog.catalog.answer import Hits, Spending
from turnlog.errors import Invalid
from turnlog.log.entry import AnyEntry
from turnlog.machine.liveobjects import LiveObjects
from turnlog.store.capability import Following
from turnlog.thread.home.newsession import SessionFields
from turnlog.transfer.report import TransferOptions, Transferred

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _home_call(
    method: Callable[Concatenate[blocking.Home, _P], _R], *, long: bool = False
) -> Callable[Concatenate[Home, _P], Coroutine[Any, Any, _R]]:
    async def call(self: Home, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        home, threads = self._blocking, self._threads  # pyright: ignore[reportPrivateUsage]
        return await (threads.run_long if long else threads.run)(method, home, *args, **kwargs)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class Home(Closing):
    """See `turnlog.Home`."""

    def __init__(self, home: blocking.Home, threads: Threads) -> None:
        self._blocking = home
        self._threads = threads
        self._catalog: Catalog | None = None
        self._tenant_homes: LiveObjects[Home] = LiveObjects()
        self._is_closing = False

    async def close(self) -> None:
        """See `turnlog.Home.close`."""
        if self._is_closing:
            return
        self._is_closing = True  # before the first `await`: another task may close it as well
        async with AsyncExitStack() as closing:  # whatever cannot be closed, the others are
            closing.push_async_callback(self._close_blocking)
            if self._catalog is not None:
                closing.push_async_callback(self._catalog.close)
            for home in self._tenant_homes:
                closing.push_async_callback(home.close)

    async def _close_blocking(self) -> None:
        try:
            if not self._threads.is_closed:  # otherwise this home was closed with that of its parent
                await self._threads.run(self._blocking.close)
        finally:
            self._threads.close()

    def _own_catalog(self) -> Catalog:
        """A catalog of this home's sessions only, made for the first question."""
        if self._is_closing or self._threads.is_closed:
            raise Invalid("this home is closed", hint="open it again")
        if self._catalog is None:
            self._catalog = Catalog(self._blocking, agents=False)
        return self._catalog

    async def search(
        self, query: str, *, workspace: str | os.PathLike[str] | None = None, limit: int = 20, before: int | None = None
    ) -> Hits:
        """The passages in this home that have these words, newest first; `before` is the `next` of the page before.

        See `turnlog.Catalog.search`. Without an event loop, ask `turnlog.Catalog(home, agents=False)`.
        """
        return await self._own_catalog().search(query, workspace=workspace, limit=limit, before=before)

    async def usage(self, query: str = "", *, by: str = "day", timezone: tzinfo | None = None) -> list[Spending]:
        """What was spent in this home, in groups: `by="label:customer"`, `by="month,model"`. The last row is the total.

        See `turnlog.Catalog.usage`. Without an event loop, ask `turnlog.Catalog(home, agents=False)`.
        """
        return await self._own_catalog().usage(query, by=by, timezone=timezone)

    @property
    def backend(self) -> str:
        """The kind of store."""
        return self._blocking.backend

    @property
    def tenant_name(self) -> str | None:
        """The name of the tenant, if this home came from `tenant`."""
        return self._blocking.tenant_name

    @property
    def following(self) -> Following:
        """See `turnlog.Home.following`."""
        return self._blocking.following

    async def tenant(self, name: str, *, create: bool = True) -> Home:
        """See `turnlog.Home.tenant`. It runs on the threads of this home, and is closed with it."""
        opened = await self._threads.run(self._blocking.tenant, name, create=create)
        home = Home(opened, self._threads.shared())
        self._tenant_homes.add(home)
        return home

    tenants = _home_call(blocking.Home.tenants)
    drop_tenant = _home_call(blocking.Home.drop_tenant, long=True)
    find = _home_call(blocking.Home.find)
    exists = _home_call(blocking.Home.exists)
    sessions = _home_call(blocking.Home.sessions)
    session_of = _home_call(blocking.Home.session_of, long=True)
    import_sessions = _home_call(blocking.Home.import_sessions, long=True)
    health = _home_call(blocking.Home.health)
    delete = _home_call(blocking.Home.delete)
    restore = _home_call(blocking.Home.restore)
    purge = _home_call(blocking.Home.purge, long=True)
    forks = _home_call(blocking.Home.forks)
    expire = _home_call(blocking.Home.expire, long=True)
    compare = _home_call(blocking.Home.compare, long=True)
    blame = _home_call(blocking.Home.blame, long=True)
    blame_commit = _home_call(blocking.Home.blame_commit, long=True)
    gc = _home_call(blocking.Home.gc, long=True)
    disk = _home_call(blocking.Home.disk, long=True)
    put_blob = _home_call(blocking.Home.put_blob)
    get_blob = _home_call(blocking.Home.get_blob)

    async def push(
        self, other: Home | blocking.Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> list[Transferred]:
        """See `turnlog.Home.push`."""
        return await self._threads.run_long(self._blocking.push, blocking_home(other), ids, **options)

    async def pull(
        self, other: Home | blocking.Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> list[Transferred]:
        """See `turnlog.Home.pull`."""
        return await self._threads.run_long(self._blocking.pull, blocking_home(other), ids, **options)

    async def sync(
        self, other: Home | blocking.Home, ids: Iterable[str] | None = None, **options: Unpack[TransferOptions]
    ) -> tuple[list[Transferred], list[Transferred]]:
        """See `turnlog.Home.sync`."""
        return await self._threads.run_long(self._blocking.sync, blocking_home(other), ids, **options)

    async def create(self, *, drafts: Sequence[AnyEntry] = (), **fields: Unpack[SessionFields]) -> Session:
        """See `turnlog.Home.create`."""
        return Session(await self._threads.run(self._blocking.create, drafts=drafts, **fields), self._threads)

    async def resume(self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None) -> Session:
        """See `turnlog.Home.resume`."""
        opened = await self._threads.run(self._blocking.resume, session, workspace=workspace)
        return Session(opened, self._threads)

    async def read(
        self, session: str | None = None, *, workspace: str | os.PathLike[str] | None = None
    ) -> ReadOnlySession:
        """See `turnlog.Home.read`."""
        opened = await self._threads.run(self._blocking.read, session, workspace=workspace)
        return ReadOnlySession(opened, self._threads)


def blocking_home(home: Home | blocking.Home) -> blocking.Home:
    """The blocking home behind an asynchronous one, for the rooms of this package."""
    return home._blocking if isinstance(home, Home) else home  # pyright: ignore[reportPrivateUsage]
