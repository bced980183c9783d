"""A terminal that somebody looks at: a pseudo terminal, and an emulator that reads what is drawn on it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pyte

_TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
_PATIENCE_S = 60
KEYS = {
    "Enter": "\r", "Escape": "\x1b", "Tab": "\t", "Up": "\x1b[A", "Down": "\x1b[B", "End": "\x1b[F", "Home": "\x1b[H",
    "PgDn": "\x1b[6~", "PgUp": "\x1b[5~", "Ctrl-C": "\x03", "Ctrl-Z": "\x1a", "Ctrl-A": "\x01", "Ctrl-P": "\x10",
}  # fmt: skip


class Emulator:
    """Runs a command on a terminal of so many columns and lines; `until` looks, `press` and `type` are the keyboard."""

    def __init__(
        self,
        *words: str,
        columns: int = 80,
        lines: int = 24,
        is_piped: bool = False,
        cwd: str | None = None,
        **environment: str,
    ) -> None:
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        self._resize(columns, lines)
        self.attributes = termios.tcgetattr(self.slave)
        surroundings = {**os.environ, "TERM": "xterm-256color", **environment}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            if name not in environment:
                surroundings.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE, *(words or (sys.executable, "-m", "turnlog", "tui"))],
            stdin=self.slave, stdout=subprocess.PIPE if is_piped else self.slave, stderr=self.slave,
            start_new_session=True, env=surroundings, cwd=cwd,
        )  # fmt: skip

    def __enter__(self) -> Emulator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)

    @property
    def shown(self) -> list[str]:
        """Every line of the screen, without blanks at its end."""
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    def until(self, wanted: str | Callable[[list[str]], Any]) -> list[str]:
        """The screen, once it has that text, or is so."""
        end = time.monotonic() + _PATIENCE_S
        while not (wanted in self.text if isinstance(wanted, str) else wanted(self.shown)):
            assert time.monotonic() < end, f"{wanted!r} never came:\n{self.text}"
            self._read(1.0)
        return self.shown

    def until_open(self, *texts: str) -> None:
        """Until a session is open and shows these texts: the list's preview may show them, too."""
        self.until(lambda shown: "q back" in shown[-1] and all(any(text in line for line in shown) for text in texts))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.type(KEYS[key])

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._resize(columns, lines)

    def _resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        data = os.read(self.master, 65536)
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def quiet(self) -> None:
        """Until nothing is drawn any more for a moment: only to measure, never as a proof."""
        while self._read(0.4):
            pass

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        end = time.monotonic() + _PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it never ended:\n{self.text}"
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    def is_given_back(self) -> bool:
        """Whether the terminal is as it was: line by line, with an echo, a cursor and its own screen."""
        last = {code: self.written.rfind(code) for code in _MODES for code in (code + b"h", code + b"l")}
        is_as_before = termios.tcgetattr(self.slave) == self.attributes
        return is_as_before and all(
            last[code + b"l"] >= last[code + b"h"] if code != b"\x1b[?25" else last[code + b"h"] >= last[code + b"l"]
            for code in _MODES
        )


_MODES = (b"\x1b[?1049", b"\x1b[?25", b"\x1b[?1000", b"\x1b[?1003", b"\x1b[?2004", b"\x1b[?1004")
