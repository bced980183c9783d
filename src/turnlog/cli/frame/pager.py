"""Long output through `$PAGER`, on a terminal. Quitting it is no error."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO, cast


def pager() -> str | None:
    """The command to page with; None where the output is not for a terminal, or nobody wants one."""
    chosen = os.environ.get("PAGER")
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or chosen in ("", "cat"):
        return None
    import shlex
    import shutil

    if chosen is None:
        return "less -R" if shutil.which("less") else None
    try:
        program = next((word for word in shlex.split(chosen) if not _is_assignment(word)), "")
    except ValueError:
        program = ""
    if shutil.which(os.path.expandvars(os.path.expanduser(program))) is None:  # noqa: PTH111 - it may be no path
        from turnlog.cli.frame.notes import warn

        warn(f"PAGER is {chosen}, and there is no such program")
        return None
    return chosen


def _is_assignment(word: str) -> bool:
    """Whether a shell takes the word as a variable for the program behind it: `LESS=FRX`."""
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isascii() and name.isidentifier()


@contextmanager
def paged(*, is_wanted: bool = True) -> Generator[TextIO]:
    """Where to print: into the pager, or to stdout. Waits until the pager is done."""
    command = pager() if is_wanted else None
    if command is None:
        yield sys.stdout
        return
    import signal
    import subprocess  # where nothing is paged, that is as long to load as much of the rest

    sys.stdout.flush()
    # As git does: quit where it fits on one screen, pass colours on, leave the text on the screen.
    surroundings = {**os.environ, "LESS": os.environ.get("LESS", "FRX"), "LESSSECURE": "1"}
    process = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, env=surroundings)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's: it stops a search, say
    stream = TextIOWrapper(cast("TextIO", process.stdin), "utf-8", "backslashreplace")  # pyright: ignore[reportArgumentType]
    try:
        yield stream
        stream.flush()
    except BrokenPipeError:
        pass  # it was quit before the end
    finally:
        try:
            stream.close()
        except BrokenPipeError:
            if not stream.closed:
                stream.detach()
        process.wait()
        signal.signal(signal.SIGINT, before)
