"""The server: it listens on 127.0.0.1 only, in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NoReturn

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from turnlog.catalog import Catalog
from turnlog.catalog.waiter import GivenUp
from turnlog.errors import TurnlogError, Unavailable
from turnlog.machine.environment import state_folder
from turnlog.machine.folder import workspace_path
from turnlog.reader.viewing.desk import Desk
from turnlog.session import open_home
from turnlog.web import errorpage, pages
from turnlog.web.disconnect import CancelOnDisconnect
from turnlog.web.guard import Guard, page_token_of
from turnlog.web.stream import Streams
from turnlog.web.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Generator

PORT = 7475
_TRIES = 50
_THREADS = 8
"""How many requests are handled at once; they read, and mostly wait for their turn at the catalog."""
_CHANGE_THREADS = 2


def listen(port: int | None) -> socket.socket:
    """A socket on loopback: on that port, or by default on the first free one from 7475 on."""
    for number in range(PORT, PORT + _TRIES) if port is None else (port,):
        # With its protocol named: asyncio turns Nagle's algorithm off only then, which costs 40 ms per answer.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", number))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if port is not None:
                reason = error.strerror or error
                raise Unavailable(f"port {port}: {reason}", hint="another --port, or none for a free one") from None
            continue
        return listener
    raise Unavailable(f"no free port from {PORT} to {PORT + _TRIES - 1}", hint="`--port 0` takes any free one")


def token_kept() -> str:
    """What opens the pages: the same each time, so that tabs survive a restart. Only its owner can read it."""
    path = Path(state_folder()) / "web-token"
    try:
        kept = path.read_text().strip()
        if len(kept) >= 32 and path.stat().st_mode & 0o077 == 0:
            return kept
    except (OSError, UnicodeDecodeError):
        pass  # there is none yet, or somebody else could have read it
    token = secrets.token_urlsafe(32)
    with suppress(OSError):  # where nothing can be kept, it is another one each time
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            file.write(f"{token}\n")
    return token


def application(viewer: Viewer) -> Starlette:
    """The pages, each found by its file."""
    routes = [
        route
        for name in sorted(module.name for module in iter_modules(pages.__path__))
        for route in import_module(f"{pages.__name__}.{name}").ROUTES
    ]
    static = StaticFiles(directory=Path(__file__).parent / "static")
    app = Starlette(
        routes=[*routes, Mount("/static", static)],
        exception_handlers={
            TurnlogError: errorpage.library_error,
            HTTPException: errorpage.missing,
            GivenUp: errorpage.cancelled,
            Exception: errorpage.unexpected,
        },
    )
    app.state.viewer = viewer
    return app


class _Server(uvicorn.Server):
    """Ends when it is told to, not by signals of its own."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(
    server: _Server, bound: socket.socket, streams: Streams, started: Callable[[], None], lifeline: int | None
) -> None:
    loop = asyncio.get_running_loop()
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    streams.loop = loop

    def stop() -> None:
        streams.stop()  # open ones end by themselves, and uvicorn has nothing to cut
        server.should_exit = True

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is not signal.SIG_IGN:  # `nohup` ignores SIGHUP
            loop.add_signal_handler(one, stop)
    if lifeline is not None:
        loop.add_reader(lifeline, lambda: (loop.remove_reader(lifeline), stop()))
    loop.call_soon(started)
    tidying = asyncio.create_task(_tidy(streams))
    try:
        await server.serve(sockets=[bound])
    finally:
        tidying.cancel()


async def _tidy(streams: Streams) -> None:
    """Lets go of sessions that nobody looks at any more."""
    while True:
        await asyncio.sleep(60)
        await anyio.to_thread.run_sync(streams.desk.tidy)


def run(
    location: str | None,
    bound: socket.socket,
    token: str,
    *,
    is_read_only: bool,
    started: Callable[[], None],
    lifeline: int | None = None,
) -> None:
    """Answer until a signal comes; `started` is called when the first question would be answered.

    `lifeline` is a pipe whose other end the process that started this holds: the server ends when that is closed.
    """
    viewer = _viewer(location, page_token_of(token), is_read_only=is_read_only)
    port = bound.getsockname()[1]
    guard = Guard(CancelOnDisconnect(application(viewer)), token=token, port=port, is_read_only=is_read_only)
    config = uvicorn.Config(
        guard,
        lifespan="off",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        log_level="critical",  # what goes wrong is said by `errorpage`
        timeout_graceful_shutdown=1,
    )
    asyncio.run(_serve(_Server(config), bound, viewer.streams, started, lifeline))
    _leave(viewer.change_executor, viewer.desk)


def _viewer(location: str | None, page_token: str, *, is_read_only: bool) -> Viewer:
    home = open_home(location)
    catalog = Catalog(location, agents=True, deferred=True)
    desk = Desk(home, catalog, location, brings_in=not is_read_only)
    return Viewer(
        home=home,
        catalog=catalog,
        desk=desk,
        streams=Streams(desk),
        page_token=page_token,
        is_read_only=is_read_only,
        location=location,
        folder=workspace_path("."),
        change_executor=ThreadPoolExecutor(_CHANGE_THREADS, "change"),
        problems={},
    )


def _leave(changes: Executor, desk: Desk) -> NoReturn:
    """End the process. A thread that still reads a long session, for a client that left, is not waited for."""
    code = 1
    try:
        changes.shutdown()  # a rewind that was confirmed is carried out; a second signal ends it at once
        desk.close()  # or what was unpacked to be read would stay in the temporary folder
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
