"""What listens, answers and ends: on 127.0.0.1 only, in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

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
from turnlog.reader.desk import Desk
from turnlog.session import open_home
from turnlog.web import pages
from turnlog.web.guard import Guard, page_token_of
from turnlog.web.leaving import LeavingVisitors
from turnlog.web.pages import broken
from turnlog.web.stream import Streams
from turnlog.web.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Generator

PORT = 7475
_TRIES = 50
_THREADS = 8
"""How many requests are handled at once; they read, and mostly wait for their turn at the catalog."""


def listen(port: int | None) -> socket.socket:
    """A socket on loopback: on that port, or by default on the first free one from 7475 on."""
    for number in range(PORT, PORT + _TRIES) if port is None else (port,):
        # With its protocol named: asyncio turns Nagle's algorithm off only then, which costs 40 ms per answer.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(("127.0.0.1", number))
            made.listen(128)
        except OSError as error:
            made.close()
            if port is not None:
                told = error.strerror or error
                raise Unavailable(f"port {port}: {told}", hint="another --port, or none for a free one") from None
            continue
        return made
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
    made = secrets.token_urlsafe(32)
    with suppress(OSError):  # where nothing can be kept, it is another one each time
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.write(fd, f"{made}\n".encode())
        os.close(fd)
    return made


def application(viewer: Viewer) -> Starlette:
    """The pages, each found by its file."""
    routes = [
        route
        for module in sorted(found.name for found in iter_modules(pages.__path__))
        for route in import_module(f"{pages.__name__}.{module}").ROUTES
    ]
    static = StaticFiles(directory=Path(__file__).parent / "static")
    made = Starlette(
        routes=[*routes, Mount("/static", static)],
        exception_handlers={
            TurnlogError: broken.told,
            HTTPException: broken.missing,
            GivenUp: broken.left,
            Exception: broken.unexpected,
        },
    )
    made.state.viewer = viewer
    return made


class _Server(uvicorn.Server):
    """Ends when it is told to, not by signals of its own."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(server: _Server, bound: socket.socket, streams: Streams, started: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
    streams.loop = loop

    def stop() -> None:
        streams.stop()  # open ones end by themselves, and uvicorn has nothing to cut
        server.should_exit = True

    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop)
    loop.call_soon(started)
    tidying = asyncio.create_task(_tidy(streams))
    try:
        await server.serve(sockets=[bound])
    finally:
        tidying.cancel()


async def _tidy(streams: Streams) -> None:
    """What nobody looks at any more is let go."""
    while True:
        await asyncio.sleep(60)
        await anyio.to_thread.run_sync(streams.desk.tidy)


def run(
    location: str | None, bound: socket.socket, token: str, *, is_read_only: bool, started: Callable[[], None]
) -> None:
    """Answer until a signal comes; `started` is called when the first question would be answered."""
    home = open_home(location)
    catalog = Catalog(location, agents=True, deferred=True)
    desk = Desk(home, catalog, location, brings_in=not is_read_only)
    streams = Streams(desk)
    port = bound.getsockname()[1]
    page_token = page_token_of(token)
    viewer = Viewer(home, catalog, desk, streams, page_token, is_read_only, location, workspace_path("."))
    guard = Guard(LeavingVisitors(application(viewer)), token=token, port=port, is_read_only=is_read_only)
    config = uvicorn.Config(
        guard,
        lifespan="off",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,
        log_level="critical",  # what goes wrong is told by `pages/broken`
        timeout_graceful_shutdown=1,
    )
    asyncio.run(_serve(_Server(config), bound, streams, started))
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread may still be reading a long session for nobody. Nothing here is half written: so nobody waits for it.
    os._exit(0)
