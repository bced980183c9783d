"""The faces of a home, and its stores, so that one test runs through all of them.

The asynchronous face is wrapped: every awaitable is run on an event loop in a thread of its own, `async with` and
`async for` become `with` and `for`. So a test is written once, in plain calls.
"""

import asyncio
import contextlib
import inspect
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog import aio
from turnlog.session.interior import interior
from turnlog.store.files.names import file_name
from turnlog.testing import ManualClock

FACES = ("memory", "files", "aio", "postgres")


class Loop:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result(60)

    def close(self) -> None:
        self.run(self.loop.shutdown_asyncgens())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Proxy:
    """An object of `turnlog.aio` as if it were one of `turnlog`."""

    def __init__(self, target: Any, loop: Loop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if callable(value):
            return lambda *args, **kwargs: self._plain(value(*args, **kwargs))
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            value = self._loop.run(value)
        if isinstance(value, (aio.Home, aio.ReadOnlySession)):
            return Proxy(value, self._loop)
        if hasattr(value, "__aiter__"):
            return self._iterate(value)
        if hasattr(value, "__aenter__"):
            return self._enter(value)
        return value

    def _iterate(self, source: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._plain(source.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            if not self._loop.loop.is_closed():  # it closes what nobody closed
                self._loop.run(source.aclose())

    @contextlib.contextmanager
    def _enter(self, manager: Any) -> Iterator[Any]:
        value = self._loop.run(manager.__aenter__())
        try:
            yield self._plain(value)
        except BaseException as error:
            if not self._loop.run(manager.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._loop.run(manager.__aexit__(None, None, None))

    def __enter__(self) -> "Proxy":
        self._loop.run(self._target.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._loop.run(self._target.__aexit__(*error))


Open = Callable[..., Any]
"""Gives a home, as `turnlog.open` does, through the face that is being tested."""


class Place:
    """Where a test's home is: opens it any number of times, each as another process would."""

    def __init__(self, face: str, folder: Path, url: str = "") -> None:
        self.face = face
        self.url = url
        self.folder = folder
        self.clock = ManualClock()
        self._loop: Loop | None = None
        self._homes: list[Any] = []
        self._memory: Any = None

    def open(self, **options: Any) -> Any:
        """A home. A memory home is always the same store."""
        options.setdefault("clock", self.clock)
        if self.face == "memory":
            home: Any = turnlog.open("memory:", **options)
            if self._memory is None:
                self._memory = interior(home).store
            home = turnlog.Home(self._memory, clock=options["clock"], settings=interior(home).settings)
        elif self.face == "files":
            home = turnlog.open(self.folder, **options)
        elif self.face == "postgres":
            home = turnlog.open(self.url, **options)
        else:
            if self._loop is None:
                self._loop = Loop()
            home = Proxy(self._loop.run(aio.open(self.folder, **options)), self._loop)
        self._homes.append(home)
        return home

    def path(self, session: Any) -> Path:
        """The file of a session."""
        return self.folder / "sessions" / file_name(session.id)

    def all_bytes(self) -> bytes:
        """Everything that is on the disk."""
        found = b""
        for folder, _, names in os.walk(self.folder):
            for name in names:
                found += (Path(folder) / name).read_bytes()
        return found

    def close(self) -> None:
        for home in self._homes:
            home.close()
        if self._loop is not None:
            self._loop.close()


def location(request: pytest.FixtureRequest, folder: Path) -> str:
    """An empty place for the store, or through the face, that a fixture was asked for."""
    if request.param == "postgres":
        return f"{request.getfixturevalue('postgres').url}?tenant={uuid.uuid4()}"
    return "memory:" if request.param == "memory" else str(folder)


@pytest.fixture(params=FACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Through every face; `place.folder` is empty for memory and PostgreSQL."""
    place = Place(request.param, tmp_path / "home", location(request, tmp_path / "home"))
    yield place
    place.close()


@pytest.fixture
def home(place: Place) -> Any:
    """A home, through every face."""
    return place.open()


@pytest.fixture
def s(home: Any) -> Any:
    """A session, through every face."""
    return home.create()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Place]:
    """For what only shows in files."""
    place = Place("files", tmp_path / "home")
    yield place
    place.close()
