"""The lines on stderr: warnings, notes, hints. Every text is made safe, and on a terminal broken between words."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from turnlog.cli.frame.terminal import coloured, screen_width
from turnlog.view.visible import in_lines, one_line, path_line, width


def warn(text: str, *, exact: bool = False) -> None:
    """Tell that something is wrong; the command goes on."""
    tell(f"warning: {text}", exact=exact)


def note(text: str, *, exact: bool = False) -> None:
    """Tell something that a person should know."""
    tell(f"note: {text}", exact=exact)


def hint(text: str, *, exact: bool = False) -> None:
    """Tell what a person can do next."""
    tell(f"hint: {text}", exact=exact)


def tell_error(message: str, hint: str | None) -> None:
    """Print an error and its hint, each on one line: who reads them may be a program, and the hint may be a command."""
    print(f"error: {one_line(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {one_line(hint)}", file=sys.stderr)


def tell(text: str, *, colour: str | None = None, exact: bool = False) -> None:
    """Print a text on stderr. With `exact`, every blank stays: the line has a path or a command and is not wrapped."""
    for line in [path_line(text)] if exact else message_lines(text):
        print(coloured(line, colour, sys.stderr), file=sys.stderr)


def message_lines(text: str) -> list[str]:
    """The lines that `tell` prints. A command in backticks is not broken: it may be copied."""
    line = one_line(text)
    room = screen_width() if sys.stderr.isatty() else None
    if room is None or width(line) <= room:
        return [line]
    unbroken = re.sub("`[^`]*`", lambda match: match.group().replace(" ", "\0"), line)
    return [part.replace("\0", " ") for part in in_lines(unbroken, max(room, 20))]


def tell_table(lines: Iterable[str]) -> None:
    """Print the lines of a table, whose cells were made safe and coloured when it was drawn."""
    for line in lines:
        print(line, file=sys.stderr)


def tell_in_place(text: str) -> None:
    """Print a text on stderr in place of the line that is there, e.g. of progress."""
    sys.stderr.write("\r\x1b[K")
    tell(text)
