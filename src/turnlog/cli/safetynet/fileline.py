"""Lines of a file as people type them: `FILE:12`, `FILE:12,20`, `-L 12,20`, `-L 12,+9`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from turnlog.cli.frame.exitcode import UsageError
from turnlog.errors import TurnlogError
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from turnlog.blame.authorship import BlamedLine
    from turnlog.session import Home

_BEHIND = re.compile(r"(.+):(\d{1,9})(?:,(\d{1,9}))?", re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:,(\+?)(\d{1,9}))?")
_T = TypeVar("_T")


def file_and_lines(word: str, chosen: str | None) -> tuple[str, tuple[int, int] | None]:
    """Return the file, and the first and last line. If a file has the whole word as its name, it is that file."""
    match = None if os.path.lexists(word) else _BEHIND.fullmatch(word)
    if match is not None and chosen is not None:
        raise UsageError("either FILE:LINE or -L")
    if match is not None:
        return match[1], (int(match[2]), int(match[3] or match[2]))
    return word, None if chosen is None else _lines(chosen)


def _lines(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"-L {text!r:.40} is no range of lines: 12, 12,20 or 12,+9")
    first = int(match[1])
    if match[3] is None:
        return first, first
    return first, first + int(match[3]) - 1 if match[2] else int(match[3])


def ask_after_catching_up(home: Home, ask: Callable[[], _T], lines_of: Callable[[_T], Iterable[BlamedLine]]) -> _T:
    """Return the answer about lines. If sessions of it were not imported to their end, import that and ask again."""
    answer = ask()
    authors = {author for line in lines_of(answer) for author in (line.author, *line.authors) if author is not None}
    behind = {author.session for author in authors if author.prompt is None}
    return ask() if sum(_import_new(home, session) for session in behind) else answer


def _import_new(home: Home, session: str) -> int:
    """Import what is new in a session, and return how many entries that are."""
    from turnlog.live.transcript import import_new

    try:
        return import_new(interior(home).store, session)
    except TurnlogError:
        return 0  # the author of a line is known without its prompt
