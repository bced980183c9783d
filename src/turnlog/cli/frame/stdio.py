"""The streams of this process: open, safe to print to, in the order of what was printed. Imports nothing heavy."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, TextIO


class OutputLost(OSError):
    """What was printed cannot be written. Other errors of the system say nothing about our output."""


@contextmanager
def own_streams() -> Generator[None]:
    """Inside, stdout and stderr are as a command needs them; afterwards they are as they were."""
    _open_all()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _stdout(), _StderrAfterStdout(sys.stderr)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = before
        for number, stream in enumerate(streams, start=1):
            try:
                if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]
                    stream.flush()
            except OSError:
                discard_output(number)


def discard_output(number: int = 1) -> None:
    """Discard what is still buffered for a stream: Python would report it once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _open_all() -> None:
    """Open the standard streams that are closed, so that no file gets the number of one.

    Without this, a log could become the stdout of a command that `turnlog run` starts.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it is the lowest number that is free
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - or `print` would take stdout in its place
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _stdout() -> TextIO:
    """The stdout of this process over a file that raises `OutputLost`. One that tests put there stays as it is."""
    stream = sys.stdout
    if type(stream) is not TextIOWrapper:
        return stream
    file: object = getattr(stream.buffer, "raw", stream.buffer)  # it has no buffer under `python -u`
    if type(file) is not FileIO:
        return stream
    stream.flush()
    own = _OutputFile(file.fileno(), "w", closefd=False)
    return TextIOWrapper(
        own if file is stream.buffer else BufferedWriter(own),  # pyright: ignore[reportArgumentType]
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _OutputFile(FileIO):
    def write(self, data: Any) -> int:
        """See `FileIO`."""
        try:
            written = super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error
        if written is None:  # pyright: ignore[reportUnnecessaryComparison] - a full pipe of somebody who does not wait
            raise OutputLost(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return written


class _StderrAfterStdout:
    """stderr that flushes stdout first: in a pipe that gets both, a note stands behind the result it belongs to."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """See `TextIO`. Raises where the result that was printed before cannot be written."""
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
