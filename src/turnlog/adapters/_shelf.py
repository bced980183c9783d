"""The home of an adapter and the sessions that it keeps open, on a few threads for who awaits."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from turnlog import aio
from turnlog.aio.home import blocking_home
from turnlog.aio.threads import Threads
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound, Unsupported
from turnlog.machine.folder import expand
from turnlog.session import Home, Session, open_home
from turnlog.thread.reader import refuse_purged

if TYPE_CHECKING:
    from typing import Self

_P = ParamSpec("_P")
_R = TypeVar("_R")
_OPEN = 256
"""So many sessions are kept open; of one that is left behind, whoever uses it still has it."""

AnyHome = str | os.PathLike[str] | Home | aio.Home | None
"""What an adapter takes as its home: where it is, as `turnlog.open` does; or one that is open."""


class Shelf:
    """A home, opened when it is first needed, and sessions of it, each once. Safe to use from many threads."""

    def __init__(self, home: AnyHome, framework: str) -> None:
        self._given = home
        self.framework = framework
        self._home: Home | None = blocking_home(home) if isinstance(home, (Home, aio.Home)) else None
        self._is_own = self._home is None
        self._threads: Threads | None = None
        self._mutex = threading.RLock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._locks: dict[str, tuple[threading.RLock, int]] = {}
        self.is_closed = False

    # ── the home ──────────────────────────────────────────────────────────────────────────────────

    @property
    def home(self) -> Home:
        """The home; `Invalid` once the adapter is closed."""
        with self._mutex:
            if self.is_closed:
                raise Invalid(f"this {self.framework} store is closed", hint="make another one")
            if self._home is None:
                assert not isinstance(self._given, (Home, aio.Home))
                location = self._given
                self._home = open_home(
                    expand(location) if isinstance(location, str) and location.startswith("~") else location
                )
            return self._home

    def close(self) -> None:
        """Let go of everything; a home that was given stays open."""
        with self._mutex:
            self.is_closed = True
            sessions, self._sessions = list(self._sessions.values()), OrderedDict()
            threads, self._threads = self._threads, None
        for session in sessions:
            session.close()
        if self._is_own and self._home is not None:
            self._home.close()
        if threads is not None:
            threads.close()

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    def find(self, session_id: str, *, fresh: bool = True) -> Session | None:
        """The session with exactly that id; None if there is none. `fresh`: with what others have written since."""
        home = self.home
        with self._mutex:
            session = self._sessions.get(session_id)
            if session is not None:
                self._sessions.move_to_end(session_id)
        if session is not None and not session.is_closed:
            if not fresh:
                return session
            try:
                refuse_purged(session)
                session.refresh()
            except (NotFound, Conflict):  # it is another one by now, or none
                self.forget(session_id)
            else:
                return session
        try:
            return self._keep(home.resume(session_id))
        except NotFound:
            return None

    def make(self, session_id: str | None, **fields: Any) -> Session:
        """A new session; where somebody else was faster, that one."""
        labels = {"framework": self.framework, **fields.pop("labels", {})}
        try:
            return self._keep(self.home.create(id=session_id, labels=labels, agent=self.framework, **fields))
        except AlreadyExists:
            session = None if session_id is None or fields.get("drafts") else self.find(session_id)
            if session is None:
                raise
            return session

    def _keep(self, session: Session) -> Session:
        with self._mutex:
            session = self._sessions.setdefault(session.id, session)
            self._sessions.move_to_end(session.id)
            while len(self._sessions) > _OPEN:
                self._sessions.popitem(last=False)
            return session

    def hold(self, session: Session) -> Session:
        """Keep one that was made another way: a fork, a subagent's."""
        return self._keep(session)

    def forget(self, session_id: str) -> None:
        """It is to be looked for again."""
        with self._mutex:
            self._sessions.pop(session_id, None)

    def purge(self, session_id: str, **options: Any) -> bool:
        """Remove a session for good; whether there was one."""
        self.forget(session_id)
        try:
            self.home.purge(session_id, deleted=False, **options)
        except NotFound:
            return False
        return True

    def locked(self, session_id: str) -> SessionLock:
        """One thread of this process at a time does what takes several steps with that session."""
        return SessionLock(self._mutex, self._locks, session_id)

    # ── for who awaits ────────────────────────────────────────────────────────────────────────────

    def run(self, call: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> Coroutine[Any, Any, _R]:
        """What it returns, when it does, on a thread. What has begun is finished, even if nobody waits any more."""
        with self._mutex:
            if self.is_closed:
                raise Invalid(f"this {self.framework} store is closed", hint="make another one")
            if self._threads is None:
                self._threads = Threads(f"{self.framework} store")
            threads = self._threads
        return threads.run(call, *args, **kwargs)


class SessionLock:
    """The lock of one session, which is there as long as a thread uses it."""

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


class Closing:
    """`close()`, `with` and `async with` for an adapter with a `shelf`."""

    shelf: Shelf

    def close(self) -> None:
        """Let go of everything; a home that was given stays open."""
        self.shelf.close()

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


def check_id(value: object, what: str) -> str:
    """An id of a framework's, or `Invalid`."""
    if not isinstance(value, str) or not value:
        raise Invalid(f"the {what} {value!r:.80} is not a text", hint=f"give a {what} that is a text and not empty")
    return value


def joined(*parts: str) -> str:
    """The session's id for an id of several parts: joined by `/`, so that no two are the same."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


def parts_of(session_id: str) -> list[str]:
    """The parts that `joined` was given."""
    return [part.replace("%2F", "/").replace("%25", "%") for part in session_id.split("/")]


def framework(module: str, extra: str) -> Any:
    """A module of a framework, or what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise Unsupported(f"{module} is not installed: {error}", hint=f"pip install 'turnlog[{extra}]'") from error
