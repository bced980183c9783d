"""Sessions in the person's browser: opening it, and a server for as long as another command runs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from urllib.parse import quote

from turnlog.cli.frame.home import home_location
from turnlog.errors import Unavailable
from turnlog.machine.environment import environment, state_folder
from turnlog.view.visible import quoted

_STARTING_S = 300
"""After this time a browser has started, and read the file with which it was opened."""


def has_display() -> bool:
    """Whether a browser would be seen here."""
    is_there = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return not sys.platform.startswith("linux") or bool(is_there)


def open_in_browser(url: str) -> None:
    """Open an address, if there is a browser; in the background, because that may take a while.

    The address contains a token, and everybody on the machine can see the arguments of a process: the browser gets a
    file that only its owner can read, which redirects to the address.
    """
    import webbrowser

    if has_display():
        file_url = redirect(url).as_uri()
        threading.Thread(target=webbrowser.open, args=(file_url,), daemon=True).start()


def redirect(url: str) -> Path:
    """Write a file that redirects to an address. Files for earlier pages, which browsers have read, are removed."""
    folder = Path(state_folder())
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={escape(url)}">\n'
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        for earlier in folder.glob("web-open*.html"):
            with suppress(FileNotFoundError):  # another process removes them, too
                if time.time() - earlier.lstat().st_mtime > _STARTING_S:
                    earlier.unlink()
        with NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix="web-open-", suffix=".html", delete=False
        ) as file:
            path = Path(file.name)
            try:
                file.write(text)
                file.flush()
            except OSError:
                path.unlink(missing_ok=True)
                raise
    except OSError as error:
        hint = "`turnlog web --no-open --print-url` prints the address"
        raise Unavailable(f"{folder}: {error.strerror or error}", hint=hint) from None
    return path


class PageServer:
    """`turnlog web` in a process of its own, begun when the first page is wanted, ended when this is left."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._mutex = threading.Lock()
        self._starting = threading.Lock()
        self._is_over = False
        self._address = self._token = ""

    def __enter__(self) -> PageServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._mutex:  # another thread may be about to begin it
            self._is_over = True
        if self._process is not None:
            with self._process as process:
                process.terminate()

    def show(self, name: str) -> str:
        """Open the page of a session, and return what to tell of it."""
        if not has_display():
            return f"no browser here: `turnlog web {quoted(name)}` in another shell"
        with self._starting:  # two pages that are wanted at once are of one server
            if self._process is None or self._process.poll() is not None:
                self._start()
        url = f"{self._address}/s/{quote(name, safe='')}"
        open_in_browser(f"{url}?token={self._token}")
        return f"in the browser: {url}"

    def _start(self) -> None:
        server = self._spawn()
        assert server.stdout is not None and server.stderr is not None
        url = server.stdout.readline().strip()
        if not url:
            lines = [line.removeprefix("error: ").removeprefix("hint: ") for line in server.stderr.read().splitlines()]
            raise Unavailable(" · ".join(lines) or "`turnlog web` did not start")
        threading.Thread(target=server.stderr.read, daemon=True).start()  # or it would wait for somebody to read it
        self._address, _, self._token = url.partition("/?token=")

    def _spawn(self) -> subprocess.Popen[str]:
        location = home_location()
        # The home is not an argument: it may contain a password. Without -P, modules in the current folder would run.
        home = {} if location is None else {"TURNLOG_HOME": location}
        command = [sys.executable, "-P", "-m", "turnlog", "web", "--no-open", "--print-url", "--until-stdin-ends"]
        with self._mutex:
            if self._is_over:
                raise Unavailable("turnlog is about to end")
            # A session of its own: Ctrl-C on the terminal is not for it. When this process ends, however it does,
            # so does the stdin of the server.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env={**environment(), **home}, start_new_session=True,
            )  # fmt: skip
            return self._process
