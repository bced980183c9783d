"""A real terminal: a pseudo terminal that a command has for itself, with Ctrl-C and all."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from types import TracebackType

_TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
_PATIENCE_S = 60
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """Runs `python …` in a terminal of so many columns; `until` waits for a text and `type` answers."""

    def __init__(self, *words: str, columns: int = 80, program: str = sys.executable, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        surroundings = {**os.environ, "TERM": "xterm", **environment}
        for name in ("NO_COLOR", "COLUMNS"):
            if name not in environment:
                surroundings.pop(name, None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TAKE, program, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=surroundings,
        )
        os.close(slave)
        self.text = ""
        self._data = b""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def until(self, wanted: str) -> str:
        """Everything so far, once that text was printed."""
        while wanted not in self.text:
            assert self._read(), f"{wanted!r} never came: {self.text!r}"
        return self.text

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        while self._read():
            pass
        return self._process.wait(_PATIENCE_S)

    @property
    def plain(self) -> str:
        """What was printed, without colours."""
        return COLOUR.sub("", self.text)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], _PATIENCE_S)
        assert ready, f"nothing more came: {self.text!r}"
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False  # that is how Linux says that nobody has the terminal open any more
        # What comes in one piece may end between the two, or in the middle of a character.
        self._data += data
        self.text = self._data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
