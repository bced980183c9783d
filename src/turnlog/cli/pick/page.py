"""Sessions in the person's browser: opening it, and a server for as long as another command runs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import TracebackType
from urllib.parse import quote

from turnlog.cli.frame.home import home_location
from turnlog.errors import Unavailable


def has_display() -> bool:
    """Whether a browser would be seen here."""
    is_there = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return not sys.platform.startswith("linux") or bool(is_there)


def open_in_browser(url: str) -> None:
    """Open an address, if there is a browser; in the background, for it may take its time."""
    import webbrowser

    if has_display():
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


class PageServer:
    """`turnlog web` in a process of its own, begun when the first page is wanted, ended when this is left."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._address = self._token = ""

    def __enter__(self) -> PageServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            with self._process as process:
                process.terminate()

    def show(self, name: str) -> str:
        """Open the page of a session; gives what to tell of it."""
        if not has_display():
            return f"no browser here: `turnlog web {name}` in another shell"
        if self._process is None or self._process.poll() is not None:
            self._start()
        url = f"{self._address}/s/{quote(name, safe='')}"
        open_in_browser(f"{url}?token={self._token}")
        return f"in the browser: {url}"

    def _start(self) -> None:
        location = home_location()
        chosen = ["--home", location] if location is not None else []
        command = [sys.executable, "-m", "turnlog", *chosen, "web", "--no-open", "--print-url"]
        # A session of its own: Ctrl-C on the terminal is not for it.
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert server.stdout is not None and server.stderr is not None
        url = server.stdout.readline().strip()
        if not url:
            lines = [line.removeprefix("error: ").removeprefix("hint: ") for line in server.stderr.read().splitlines()]
            with server:
                raise Unavailable(" · ".join(lines) or "`turnlog web` did not start")
        threading.Thread(target=server.stderr.read, daemon=True).start()  # or it would wait for somebody to read it
        self._process = server
        self._address, _, self._token = url.partition("/?token=")
