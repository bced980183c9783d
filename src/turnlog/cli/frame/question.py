"""Questions to whoever sits at the terminal, where somebody does."""

from __future__ import annotations

import os
import sys

from turnlog.cli.frame.exitcode import Exit
from turnlog.cli.frame.notes import tell
from turnlog.errors import Invalid

NO = 1
"""The exit code when the question is answered with no."""
NOTHING_CHANGED = "nothing was changed"
"""What Ctrl-C at a question prints. A caller that has already changed something gives a text of its own."""


def refuse_without_terminal(asks: str, *, as_json: bool, hint: str = "--yes does it without asking") -> None:
    """Raise `Invalid` where there is no terminal to ask on; `asks` says what asks for what."""
    if not can_ask(as_json=as_json):
        where = "with --json it cannot" if as_json else "there is no terminal"
        raise Invalid(f"{asks}, and {where}", hint=hint)


def confirm(question: str, *, nothing: str) -> None:
    """Ask on the terminal. Anything but yes raises `Exit`, after telling `nothing`: that nothing was done."""
    if not ask(question, nothing=nothing):
        tell(nothing)
        raise Exit(NO)


def can_ask(*, as_json: bool) -> bool:
    """Whether there is a terminal to ask on."""
    is_open = sys.stdin is not None  # pyright: ignore[reportUnnecessaryComparison] - a process may have none
    return not as_json and is_open and sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str, *, default: bool = False, nothing: str = NOTHING_CHANGED) -> bool:
    """Ask on the terminal. Anything but yes means no; an empty line means the default. `nothing`: see `ask_words`."""
    answer = ask_words(f"{question} [{'Y/n' if default else 'y/N'}]", nothing=nothing).lower()
    return answer in ("y", "yes") or (default and not answer)


def ask_words(question: str, *, nothing: str = NOTHING_CHANGED) -> str:
    """Ask on the terminal for a line. An end without one is a no. `nothing` is what Ctrl-C tells was not done."""
    sys.stdout.flush()
    try:
        sys.stderr.write(f"{question} ")
        sys.stderr.flush()
        _wait_for_line()
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        print(file=sys.stderr)  # behind the `^C` of the terminal
        tell(nothing)
        raise
    if not answer.endswith("\n"):
        print(file=sys.stderr)
        return answer.strip() or "no"
    return answer.strip()


def _wait_for_line() -> None:
    """Return when there is a line to read.

    Python acts on a signal between two of its own steps. A Ctrl-C that comes after the last one and before the read
    would wait for a line first; the wakeup descriptor ends this wait whenever it comes.
    """
    import select
    import signal  # who is asked nothing needs neither

    wakeup, signalled = os.pipe()
    os.set_blocking(signalled, False)
    before = signal.set_wakeup_fd(signalled)
    try:
        while sys.stdin not in select.select([sys.stdin, wakeup], [], [])[0]:
            os.read(wakeup, 64)
    finally:
        signal.set_wakeup_fd(before)
        os.close(wakeup)
        os.close(signalled)
