"""The home of an adapter, its open sessions with their locks, and the threads for callers that await."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from turnlog import aio
from turnlog.adapters._recent import Recent
from turnlog.aio.home import blocking_home
from turnlog.aio.threads import Threads
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable
from turnlog.log.entry import AnyEntry
from turnlog.machine.folder import expand
from turnlog.session import Home, Session, open_home
from turnlog.store.forked import renew_after_fork
from turnlog.thread.reader import refuse_purged
from turnlog.thread.report import Info

if TYPE_CHECKING:
    from typing import Self

_P = ParamSpec("_P")
_R = TypeVar("_R")
_OPEN_SESSIONS = 256
"""At most this many sessions are cached. A dropped one stays open as long as its caller holds it."""

AnyHome = str | os.PathLike[str] | Home | aio.Home | None
"""What an adapter takes as its home: where it is, as `turnlog.open` does; or one that is open."""


class AdapterSessions:
    """The sessions of an adapter, each open once, in a home that is opened when it is first needed.

    Safe to use from many threads.
    """

    def __init__(self, home: AnyHome, framework: str) -> None:
        self.framework = framework
        self._home: Home | None = None
        self._location: str | os.PathLike[str] | None = None
        self._is_own = not isinstance(home, (Home, aio.Home))
        if isinstance(home, (Home, aio.Home)):
            self._home = blocking_home(home)
        else:
            self._location = expand(home) if isinstance(home, str) and home.startswith("~") else home
        self._threads: Threads | None = None
        self._sessions: Recent[str, Session] = Recent(_OPEN_SESSIONS)
        self.is_closed = False
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """See `renew_after_fork`: threads of the parent may hold the old ones."""
        self._mutex = threading.RLock()
        self._opening = threading.Lock()
        """Held while the home is opened, which may wait for a disk or a server; the event loop never takes it."""
        self._locks: dict[str, tuple[threading.RLock, int]] = {}

    # ── the home ──────────────────────────────────────────────────────────────────────────────────

    @property
    def home(self) -> Home:
        """The home; `Invalid` once the adapter is closed."""
        if self._home is None and not self.is_closed:
            with self._opening:
                self._open()
        home = self._home
        if self.is_closed or home is None:
            raise self._closed()
        return home

    def check_open(self) -> None:
        """Open the home if it is not open yet; `Invalid` once the adapter is closed."""
        _ = self.home

    def _open(self) -> None:
        if self._home is not None:  # another thread was faster
            return
        home = open_home(self._location)
        with self._mutex:
            if not self.is_closed:
                self._home = home
                return
        home.close()

    def _closed(self) -> Invalid:
        return Invalid(f"this {self.framework} store is closed", hint="make another one")

    def close(self) -> None:
        """Close every session, and the home unless it was given."""
        with self._mutex:
            self.is_closed = True
            sessions = self._sessions.pop_all()
            threads, self._threads = self._threads, None
        with ExitStack() as closing:  # whatever cannot be closed, the others are
            if threads is not None:
                closing.callback(threads.close)
            if self._is_own and self._home is not None:
                closing.callback(self._home.close)
            for session in sessions:
                closing.callback(session.close)

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    def find(self, session_id: str, *, fresh: bool = True) -> Session | None:
        """The session with exactly that id; None if there is none. `fresh`: with what others have written since."""
        home = self.home
        session = self._sessions.get(session_id)
        if session is not None and not session.is_closed:
            if not fresh:
                return session
            try:
                refuse_purged(session, ("live",))
                session.refresh()
            except (NotFound, Conflict):  # it is another one by now, or none
                self.forget(session_id)
            else:
                return session
        try:
            return self.hold(home.resume(session_id))
        except NotFound:
            return None

    def create(
        self,
        session_id: str,
        *,
        labels: Mapping[str, str] | None = None,
        drafts: Sequence[AnyEntry] = (),
        workspace: str | os.PathLike[str] | None = None,
        hidden: bool = False,
    ) -> Session:
        """Create a session; see `Home.create` for the fields.

        If another writer has created it by now, return that one, unless there are drafts: then it is `AlreadyExists`.
        """
        home = self.home

        def create() -> Session:
            return home.create(
                id=session_id,
                labels={"framework": self.framework, **(labels or {})},
                drafts=drafts,
                workspace=workspace,
                hidden=hidden,
                agent=self.framework,
            )

        try:
            return self.hold_created(create)
        except AlreadyExists:
            session = None if drafts else self.find(session_id)
            if session is None:
                raise
            return session

    def hold_created(self, create: Callable[[], Session]) -> Session:
        """Hold the session that `create` makes.

        A `NotFound` here means that the home is gone, so it becomes `Unavailable`: adapters react to `NotFound` by
        looking for the session again.
        """
        try:
            return self.hold(create())
        except NotFound as error:
            raise Unavailable(
                str(error), hint="look whether the home is there, and whether you may write to it"
            ) from error

    def hold(self, session: Session) -> Session:
        """Keep a session open for later calls; if one of that id is held open already, return that one."""
        with self._mutex:
            held = self._sessions.get(session.id)
            if held is None or held.is_closed:  # its caller may have closed it
                self._sessions.put(session.id, session)
                held = session
        if held is not session:
            session.close()
        return held

    def forget(self, session_id: str) -> None:
        """Hold that session no longer: the next call looks for it again."""
        self._sessions.pop(session_id)

    def purge(self, session_id: str, *, after: int | None = None) -> bool:
        """Erase a session; whether there was one. `after`: `Conflict` if anything was written behind that entry."""
        self.forget(session_id)
        try:
            self.home.purge(session_id, deleted=False, after=after)
        except NotFound:
            return False
        return True

    def infos(self) -> list[Info]:
        """The sessions of the framework, as listings have them. A fork made with Turnlog has no labels."""
        return [
            info
            for info in self.home.sessions()
            if info.labels.get("framework", info.agent if info.fork else None) == self.framework
        ]

    def locked(self, session_id: str) -> SessionLock:
        """The lock of a session, for one thread of this process at a time to take several steps with it."""
        return SessionLock(self._mutex, self._locks, session_id)

    # ── for callers that await ────────────────────────────────────────────────────────────────────

    def run(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Coroutine[Any, Any, _R]:
        """Run a call on a worker thread. A call that has begun is finished even if its caller is cancelled."""
        threads = self._threads
        if threads is None:
            with self._mutex:
                if self.is_closed:
                    raise self._closed()
                if self._threads is None:
                    self._threads = Threads(f"{self.framework} store")
                threads = self._threads
        return threads.run(call, *args, **kwargs)


class SessionLock:
    """The lock of one session, which exists as long as a thread uses it."""

    def __init__(self, mutex: threading.RLock, locks: dict[str, tuple[threading.RLock, int]], session_id: str) -> None:
        self._mutex = mutex
        self._locks = locks
        self._session = session_id

    def __enter__(self) -> None:
        with self._mutex:
            lock, users = self._locks.get(self._session) or (threading.RLock(), 0)
            self._locks[self._session] = lock, users + 1
        try:
            lock.acquire()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        self._locks[self._session][0].release()
        self._leave()

    def _leave(self) -> None:
        with self._mutex:
            lock, users = self._locks[self._session]
            if users > 1:
                self._locks[self._session] = lock, users - 1
            else:
                del self._locks[self._session]


class ClosableAdapter:
    """`close()`, `with` and `async with` for an adapter with `sessions`."""

    sessions: AdapterSessions

    def close(self) -> None:
        """Close every session, and the home unless it was given."""
        self.sessions.close()

    async def aclose(self) -> None:
        """The same, on a thread."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
