"""A session for code with an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from turnlog import session as blocking
from turnlog.aio.closing import Closing
from turnlog.aio.threads import Threads
from turnlog.errors import Invalid, TurnlogError
from turnlog.log.codec import Damage
from turnlog.log.context import Context
from turnlog.log.entry import AnyEntry, Entry
from turnlog.session.document import Document, DocumentForm
from turnlog.store import derived
from turnlog.thread.call.ending import LastTurn
from turnlog.thread.home.newsession import SessionFields
from turnlog.thread.reader import FOLLOW_PAUSE_S, LOOK_S, history_of, refuse_purged
from turnlog.thread.stream import Listening
from turnlog.thread.target import Target, seq_of

if TYPE_CHECKING:
    from turnlog.exchange.exporting.output import Exported
    from turnlog.store.broadcast import Delta
    from turnlog.thread.stream import Live
    from turnlog.wire import Feed

_P = ParamSpec("_P")
_R = TypeVar("_R")
_E = TypeVar("_E", bound=Entry)
_CHUNK = 64


def _call(
    method: Callable[Concatenate[Any, _P], _R], *, long: bool = False
) -> Callable[Concatenate[ReadOnlySession, _P], Coroutine[Any, Any, _R]]:
    """The method of a blocking session as a coroutine. A `long` one runs on other threads than appends do."""

    async def call(self: ReadOnlySession, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        session, threads = self._blocking, self._threads  # pyright: ignore[reportPrivateUsage]

        def job() -> _R:
            try:
                result = method(session, *args, **kwargs)
                if isinstance(result, Context):
                    result.load()  # here, and not on the loop when a request is made of it
                return result
            except TurnlogError:
                with contextlib.suppress(TurnlogError):
                    _ = session.seq  # what a failed append left behind is looked at here, not on the loop
                raise

        return await (threads.run_long if long else threads.run)(job)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call


class ReadOnlySession(Closing):
    """See `turnlog.Home.read`. What is only looked up in memory needs no `await`."""

    def __init__(self, session: blocking.ReadOnlySession, threads: Threads) -> None:
        self._blocking = session
        self._threads = threads

    def __repr__(self) -> str:
        return repr(self._blocking)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._blocking.id

    @property
    def handle(self) -> str:
        """A short name that also finds the session."""
        return self._blocking.handle

    @property
    def head(self) -> int:
        """The `seq` of the entry that the conversation stands at; 0 if it is empty."""
        return self._blocking.head

    @property
    def seq(self) -> int:
        """The `seq` of the last entry that this object has seen."""
        return self._blocking.seq

    @property
    def title(self) -> str | None:
        """The title."""
        return self._blocking.title

    @property
    def workspace(self) -> str | None:
        """The folder the agent works in."""
        return self._blocking.workspace

    @property
    def agent(self) -> str | None:
        """The agent's name."""
        return self._blocking.agent

    @property
    def labels(self) -> dict[str, str]:
        """The labels given at creation."""
        return self._blocking.labels

    @property
    def facts(self) -> dict[str, Any]:
        """All current facts: those of the branch and the session-wide ones."""
        return self._blocking.facts

    @property
    def is_closed(self) -> bool:
        """Whether the session or its home was closed."""
        return self._blocking.is_closed

    async def get(self, key: str, default: Any = None) -> Any:
        """The current value of a fact, from memory. It is awaited like every other method."""
        return self._blocking.get(key, default)

    messages = _call(blocking.ReadOnlySession.messages)
    path = _call(blocking.ReadOnlySession.path)
    blob = _call(blocking.ReadOnlySession.blob)
    context = _call(blocking.ReadOnlySession.context)
    pending = _call(blocking.ReadOnlySession.pending)
    find = _call(blocking.ReadOnlySession.find)
    branches = _call(blocking.ReadOnlySession.branches)
    usage = _call(blocking.ReadOnlySession.usage)
    cost = _call(blocking.ReadOnlySession.cost, long=True)
    stats = _call(blocking.ReadOnlySession.stats)
    preview = _call(blocking.ReadOnlySession.preview)
    compactions = _call(blocking.ReadOnlySession.compactions)
    checkpoints = _call(blocking.ReadOnlySession.checkpoints, long=True)
    plan_rewind = _call(blocking.ReadOnlySession.plan_rewind, long=True)
    plan_undo = _call(blocking.ReadOnlySession.plan_undo, long=True)
    plan_redo = _call(blocking.ReadOnlySession.plan_redo, long=True)
    interrupted = _call(blocking.ReadOnlySession.interrupted)
    erasures = _call(blocking.ReadOnlySession.erasures)
    diff = _call(blocking.ReadOnlySession.diff, long=True)
    changes = _call(blocking.ReadOnlySession.changes, long=True)
    children = _call(blocking.ReadOnlySession.children)
    child = _call(blocking.ReadOnlySession.child)
    refresh = _call(blocking.ReadOnlySession.refresh)

    async def close(self) -> None:
        """See `turnlog.Session.close`."""
        if not self._blocking.is_closed:
            await self._threads.run(self._blocking.close)

    @property
    def last_turn(self) -> Coroutine[Any, Any, LastTurn]:
        """How the last turn of the conversation ended, or what cut it off: `await session.last_turn`."""
        return self._threads.run(lambda: self._blocking.last_turn)

    @property
    def damage(self) -> Coroutine[Any, Any, list[Damage]]:
        """The damage in this session's own log: `await session.damage`."""
        return self._threads.run_long(lambda: self._blocking.damage)

    @overload
    async def export(self, to: DocumentForm, *, redact: bool = True, content: bool = False) -> Document: ...
    @overload
    async def export(
        self, to: str, place: str | os.PathLike[str] | None = None, *, force: bool = False,
        format_version: int | None = None, include_ignored: bool = False,
    ) -> Exported: ...  # fmt: skip
    async def export(self, to: str, *args: Any, **options: Any) -> Document | Exported:
        """See `turnlog.ReadOnlySession.export`."""
        return await self._threads.run_long(self._blocking.export, to, *args, **options)

    @overload
    def entries(self, *, kind: type[_E], after: Target = 0, reverse: bool = False) -> AsyncGenerator[_E]: ...
    @overload
    def entries(
        self, *, kind: str | None = None, after: Target = 0, reverse: bool = False
    ) -> AsyncGenerator[AnyEntry]: ...
    async def entries(
        self, *, kind: str | type[Entry] | None = None, after: Target = 0, reverse: bool = False
    ) -> AsyncGenerator[Any]:
        """See `turnlog.Session.entries`."""
        source: Iterator[Any] = self._blocking.entries(after=after, kind=kind, reverse=reverse)
        while chunk := await self._threads.run(_take, source):
            for entry in chunk:
                yield entry

    @overload
    def follow(self, *, after: Target | None = None, deltas: Literal[False] = False) -> AsyncGenerator[AnyEntry]: ...
    @overload
    def follow(self, *, after: Target | None = None, deltas: bool) -> AsyncGenerator[AnyEntry | Delta]: ...
    async def follow(self, *, after: Target | None = None, deltas: bool = False) -> AsyncGenerator[AnyEntry | Delta]:
        """See `turnlog.Session.follow`."""
        last = self.seq if after is None else seq_of(after)
        loop, woken, checked_purged_at = asyncio.get_running_loop(), asyncio.Event(), 0.0

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and with it this follower
                loop.call_soon_threadsafe(woken.set)

        stop_listening, listening = await self._begin_follow(wake, deltas=deltas)
        try:
            while not self._blocking.is_closed:
                before = last
                woken.clear()  # before the read: what is written during it wakes again
                if time.monotonic() - checked_purged_at > LOOK_S:
                    await self._threads.run(refuse_purged, self._blocking)
                    checked_purged_at = time.monotonic()
                if await self._threads.run(self._has_news, last, listening):
                    async for entry in self.entries(after=last):
                        last = entry.seq
                        listening.saw(entry)
                        yield entry
                new_deltas = listening.deltas()
                for delta in new_deltas:
                    yield delta
                if last == before and not new_deltas:
                    # A follower that is notified still looks now and then: notifications get lost.
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(woken.wait(), FOLLOW_PAUSE_S if stop_listening is None else LOOK_S)
        except Invalid:
            if not self._blocking.is_closed:
                raise
        finally:
            if stop_listening is not None:
                stop_listening()
            try:
                with contextlib.suppress(Invalid):  # the home is closed, and its store with it
                    if deltas:
                        await self._threads.run(listening.close)
            finally:  # also if this task is cancelled while it waits for a thread
                listening.close()

    def _has_news(self, last: int, listening: Listening) -> bool:
        """Take new deltas, and tell whether there may be entries after entry `last`."""
        has_grown = history_of(self._blocking).log.wait(last)
        listening.take()
        return has_grown or listening.has_ended

    async def _begin_follow(
        self, wake: Callable[[], None], *, deltas: bool
    ) -> tuple[Callable[[], None] | None, Listening]:
        """Start both or neither: one that is cancelled or fails half-way leaves no listener."""

        def begin() -> tuple[Callable[[], None] | None, Listening]:
            log = history_of(self._blocking).log
            stop = derived.subscribe(log, wake)
            try:
                return stop, Listening(log, deltas=deltas)
            except BaseException:
                if stop is not None:
                    stop()
                raise

        def end(begun: tuple[Callable[[], None] | None, Listening]) -> None:
            stop, listening = begun
            if stop is not None:
                stop()
            listening.close()

        return await self._threads.run_or_undo(begin, end)


class Session(ReadOnlySession):
    """See `turnlog.Session`."""

    def __init__(self, session: blocking.Session, threads: Threads) -> None:
        super().__init__(session, threads)
        self._session = session  # `_blocking` with its own type

    append = _call(blocking.Session.append)
    user = _call(blocking.Session.user)
    system = _call(blocking.Session.system)
    assistant = _call(blocking.Session.assistant)
    tool_result = _call(blocking.Session.tool_result)
    ask = _call(blocking.Session.ask)
    answer = _call(blocking.Session.answer)
    tool_start = _call(blocking.Session.tool_start)
    note = _call(blocking.Session.note)
    spend = _call(blocking.Session.spend)
    set = _call(blocking.Session.set)
    unset = _call(blocking.Session.unset)
    compact = _call(blocking.Session.compact)
    uncompact = _call(blocking.Session.uncompact)
    edit = _call(blocking.Session.edit)
    rewind = _call(blocking.Session.rewind, long=True)
    undo = _call(blocking.Session.undo, long=True)
    redo = _call(blocking.Session.redo, long=True)
    checkpoint = _call(blocking.Session.checkpoint, long=True)
    track = _call(blocking.Session.track)
    changed = _call(blocking.Session.changed)
    problems = _call(blocking.Session.problems)
    incomplete = _call(blocking.Session.incomplete)
    finish_rewind = _call(blocking.Session.finish_rewind, long=True)
    erase = _call(blocking.Session.erase, long=True)
    context = _call(blocking.Session.context)
    refresh = _call(blocking.Session.refresh)

    def live(self, stream: Feed) -> Live:
        """See `turnlog.Session.live`. Nothing in it waits: use `with`, without `await`."""
        return self._session.live(stream)

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[str]:
        """See `turnlog.Session.turn`. A cancelled task aborts its turn."""
        bracket = self._session.turn()

        def abort(_: str) -> None:
            bracket.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)

        turn = await self._threads.run_or_undo(bracket.__enter__, abort)
        try:
            yield turn
        except BaseException as error:
            await self._threads.run_long(bracket.__exit__, type(error), error, error.__traceback__)
            raise
        await self._threads.run_long(bracket.__exit__, None, None, None)

    async def fork(
        self, at: Target | None = None, *, name: str | None = None, **fields: Unpack[SessionFields]
    ) -> Session:
        """See `turnlog.Session.fork`."""
        return Session(await self._threads.run(self._session.fork, at, name=name, **fields), self._threads)

    async def spawn(
        self, *, call: str | None = None, role: str | None = None, **fields: Unpack[SessionFields]
    ) -> Session:
        """See `turnlog.Session.spawn`."""
        child = await self._threads.run(self._session.spawn, call=call, role=role, **fields)
        return Session(child, self._threads)


def _take(source: Iterator[AnyEntry]) -> list[AnyEntry]:
    return list(islice(source, _CHUNK))
