"""Progress of long work: a line on stderr that is removed at the end. Only on a terminal, and only after a while."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

_AFTER_S = 0.5
_EVERY_S = 0.1


class _Line:
    started_at_s = 0.0
    drawn_at_s = 0.0


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
    taken = time.monotonic() - _Line.started_at_s
    left = f", {taken / share - taken:.0f} s left" if share > 0.05 and taken > 2 else ""
    size = f" of {total / 1e6:,.0f} MB" if total > 1e6 else ""
    _show(f"{what} {'█' * round(share * 20):░<20} {share:4.0%}{size}{left}")


def _show(text: str) -> None:
    now = time.monotonic()
    if _Line.started_at_s and now - _Line.started_at_s > _AFTER_S and now - _Line.drawn_at_s > _EVERY_S:
        _Line.drawn_at_s = now
        sys.stderr.write(f"\r\x1b[K{text[: _room()]}")
        sys.stderr.flush()


def _room() -> int:
    """Return how long a text may be: what is longer than a line cannot be removed from the screen."""
    try:
        return (os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1
    except (OSError, ValueError):
        return 79


def restart_clock() -> None:
    """Start to count the time again, for the next piece of work."""
    if _Line.started_at_s:
        _Line.started_at_s = time.monotonic()


@contextmanager
def progress_line() -> Generator[None]:
    """Show a line of progress where the work inside takes a while."""
    can_go_back = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    before = _Line.started_at_s
    _Line.started_at_s, _Line.drawn_at_s = time.monotonic() if can_go_back else 0.0, 0.0
    try:
        yield
    finally:
        if _Line.drawn_at_s:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        _Line.started_at_s, _Line.drawn_at_s = before, 0.0


@contextmanager
def finish_before_interrupt(what: str) -> Generator[Callable[[], bool]]:
    """Let the first Ctrl-C only ask to stop soon; yields whether it was pressed. A second one interrupts."""
    import signal

    is_interrupted = False

    def take(number: int, frame: object) -> None:
        nonlocal is_interrupted
        if is_interrupted:
            raise KeyboardInterrupt
        is_interrupted = True
        lead = "\r\x1b[K" if _Line.drawn_at_s else ""
        sys.stderr.write(f"{lead}stopping: {what}; Ctrl-C again stops at once\n")
        sys.stderr.flush()

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody else's, or ignored: that stays
        yield lambda: False
        return
    signal.signal(signal.SIGINT, take)
    try:
        yield lambda: is_interrupted
    finally:
        signal.signal(signal.SIGINT, before)
