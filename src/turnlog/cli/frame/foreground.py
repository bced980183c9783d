"""Another program in the foreground: it gets our terminal and our signals, and we get its exit code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, ClassVar

from turnlog.errors import TurnlogError
from turnlog.machine.environment import environment
from turnlog.view.visible import quoted

NOT_FOUND, NOT_RUNNABLE = 127, 126
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)


class NoCommand(TurnlogError):
    """There is no such command."""

    code: ClassVar[str] = "no_command"
    exit_code: ClassVar[int] = NOT_FOUND


class NotRunnable(TurnlogError):
    """The command is there and cannot be run."""

    code: ClassVar[str] = "not_runnable"
    exit_code: ClassVar[int] = NOT_RUNNABLE


def find_program(name: str) -> str:
    """The program of that name, before anything else is done."""
    path = shutil.which(name)
    if path is not None:
        return path
    if "/" in name and os.path.lexists(name):
        if Path(name).is_dir():
            raise NotRunnable(f"{name} is a folder", hint="name a program in it")
        chmod = f"chmod +x {quoted(name)}"
        raise NotRunnable(f"{name} is not executable", hint=f"`{chmod}`, or name its interpreter")
    hint = "it runs programs; for shell syntax: turnlog run -- sh -c '…'"
    raise NoCommand(f"no command {name!r}", hint=hint)


class Foreground:
    """Runs one program. Signals are its business from its start until this is left, so that its end can be recorded."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Foreground:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def run(self, program: str, words: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run it to its end with our stdin, stdout and stderr. A negative result is the signal that ended it.

        `environ` is what its environment has besides ours.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        for number in (*_PASSED_ON, *_OF_THE_TERMINAL):
            if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup it stays ignored, for both of us
                self._before[number] = signal.signal(number, self._take)
        try:
            surroundings = {**environment(), **environ}
            self._child = subprocess.Popen(list(words), executable=program, close_fds=False, env=surroundings)
        except OSError as error:
            raise NotRunnable(f"{program}: {error.strerror}", hint="name its interpreter") from error
        for number in self._early:
            self._child.send_signal(number)
        try:
            return self._child.wait()
        finally:
            self._is_over = True

    def _take(self, number: int, frame: FrameType | None) -> None:
        # Ctrl-C reaches everybody in the foreground of the terminal; only a signal that is ours alone is passed on.
        if self._is_over or (number in _OF_THE_TERMINAL and _is_in_foreground()):
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


def _is_in_foreground() -> bool:
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
