"""How far long work has come: a line on stderr that goes away again. Only on a terminal, and only after a while."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

_AFTER_S = 0.5
_EVERY_S = 0.1


class _Line:
    began = 0.0
    shown = 0.0


def show_files(what: str, number: int) -> None:
    """Report the number of finished files. The library calls this often; most calls do nothing."""
    _show(f"{what} … {number:,} {'file' if number == 1 else 'files'}")


def show_count(what: str, number: int, total: int) -> None:
    """Report how many of all are done."""
    _show(f"{what} … {number:,} of {total:,}")


def show_share(what: str, done: int, total: int) -> None:
    """Report how many of all bytes are done, as a bar, with the estimated remaining time."""
    share = min(1.0, done / total) if total else 0.0
    if not share:
        _show(f"{what} …")
        return
    taken = time.monotonic() - _Line.began
    left = f", {taken / share - taken:.0f} s left" if share > 0.05 and taken > 2 else ""
    size = f" of {total / 1e6:,.0f} MB" if total > 1e6 else ""
    _show(f"{what} {'█' * round(share * 20):░<20} {share:4.0%}{size}{left}")


def _show(text: str) -> None:
    now = time.monotonic()
    if _Line.began and now - _Line.began > _AFTER_S and now - _Line.shown > _EVERY_S:
        _Line.shown = now
        sys.stderr.write(f"\r\x1b[K{text[: _room()]}")
        sys.stderr.flush()


def _room() -> int:
    """What is longer than a line cannot be taken back."""
    try:
        return (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
    except (OSError, ValueError):
        return 79


def restart_clock() -> None:
    """Begin anew to count the time: something else begins, and may take a while of its own."""
    if _Line.began:
        _Line.began = time.monotonic()


@contextmanager
def progress_line() -> Generator[None]:
    """Show a line of progress where the work inside takes a while."""
    can_go_back = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    before = _Line.began
    _Line.began, _Line.shown = time.monotonic() if can_go_back else 0.0, 0.0
    try:
        yield
    finally:
        if _Line.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        _Line.began, _Line.shown = before, 0.0


@contextmanager
def finish_before_interrupt(what: str) -> Generator[Callable[[], bool]]:
    """Let the first Ctrl-C only ask to stop soon; what is yielded says whether it came. A second one stops."""
    import signal

    came: list[int] = []

    def take(number: int, frame: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)
        lead = "\r\x1b[K" if _Line.shown else ""
        sys.stderr.write(f"{lead}stopping: {what}; Ctrl-C again stops at once\n")
        sys.stderr.flush()

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody else's, or ignored: that stays
        yield lambda: False
        return
    signal.signal(signal.SIGINT, take)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, before)
