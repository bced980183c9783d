"""An exception at every point at which Python delivers one that a signal's handler raises, one point at a time.

Python looks for signals when a function begins, when a loop goes round, and when a call of C code has returned; some
calls give up because of one before they have done anything. At each of these points the exception is raised once.
`return` of a Python function is none: there is no moment between it and what its caller does next.
"""

from __future__ import annotations

import dis
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_INTERRUPTIBLE = {os.fsync, os.fdatasync, fcntl.flock, os.open, os.write, os.pread, time.sleep}
_EX = dis.opmap["CALL_FUNCTION_EX"]


class Interrupt(BaseException):
    """What the handler of a signal raises: no `Exception`, as `KeyboardInterrupt`."""


class Expired(OSError):
    """What the handler of an alarm may raise: an `Exception`, and one that looks like the disk's."""


@cache
def _jumps(code: CodeType) -> frozenset[int]:
    """Where a loop goes round."""
    return frozenset(
        step.offset
        for step in dis.get_instructions(code)
        if "JUMP_BACKWARD" in step.opname and "NO_INTERRUPT" not in step.opname
    )


class Interrupter:
    """Counts the points, and raises at one of them. 0: only counts."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.count = 0
        self.where = ""
        self._at = at
        self._error = error

    def run(self, act: Callable[[], object]) -> None:
        """Do it, and be interrupted."""
        trace, profile = sys.gettrace(), sys.getprofile()
        sys.settrace(self._trace)
        sys.setprofile(self._profile)
        try:
            act()
        finally:
            sys.setprofile(profile)
            sys.settrace(trace)

    def _point(self, frame: FrameType, event: str) -> None:
        if frame.f_code.co_filename == __file__ or (self._at and self.count >= self._at):
            return
        self.count += 1
        if self.count == self._at:
            name = os.path.basename(frame.f_code.co_filename)
            self.where = f"point {self._at}: {event} in {name}:{frame.f_lineno} {frame.f_code.co_name}"
            raise self._error(f"interrupted at {self.where}")

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event in ("call", "c_return"):
            del arg  # a method that just returned holds its object, and the exception would hold this frame
            self._point(frame, event)
        elif event == "c_call":
            if arg in _INTERRUPTIBLE:
                self._point(frame, f"before {arg.__name__}")
        elif event == "return" and (frame.f_code.co_name == "__init__" or _is_called_by_c(frame)):
            self._point(frame, event)

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        if not _jumps(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._trace_jumps

    def _trace_jumps(self, frame: FrameType, event: str, arg: Any) -> Any:
        del arg
        if event == "opcode" and frame.f_lasti in _jumps(frame.f_code):
            self._point(frame, "going round")
        return self._trace_jumps


def _is_called_by_c(frame: FrameType) -> bool:
    above = frame.f_back
    return above is not None and above.f_code.co_code[above.f_lasti] == _EX


@contextmanager
def quiet() -> Iterator[list[str]]:
    """What comes up where nobody can catch it, as in a finaliser, is dropped by Python with a message; so here."""
    said: list[str] = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda found: said.append(str(found.exc_value))
    try:
        yield said
    finally:
        sys.unraisablehook = hook


@contextmanager
def room() -> Iterator[Path]:
    """A folder of its own, where syncs cost nothing."""
    above = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="turnlog-", dir=above))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def locked_files(folder: Path) -> list[str]:
    """The files below that somebody holds a lock of: asked as another process would."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".jsonl", ".lock"):
            fd = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(path.name)
            finally:
                os.close(fd)
    return found


def leftovers(folder: Path) -> list[str]:
    """Files that never got their name."""
    return [str(path.relative_to(folder)) for path in folder.rglob(".new-*")]


def open_below(folder: Path) -> list[str]:
    """What this process has open below a folder."""
    found: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if target.startswith(str(folder)):
            found.append(target)
    return found
