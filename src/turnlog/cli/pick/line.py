"""Lines of a file as people type them: `FILE:12`, `FILE:12,20`, `-L 12,20`, `-L 12,+9`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from turnlog.errors import TurnlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnlog.blame.authorship import BlamedLine
    from turnlog.session import Home

_BEHIND = re.compile(r"(.+):(\d{1,9})(?:,(\d{1,9}))?", re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:,(\+?)(\d{1,9}))?")
_T = TypeVar("_T")


def file_and_lines(word: str, chosen: str | None) -> tuple[str, tuple[int, int] | None]:
    """The file, and the first and last line; a file that is there is what its whole name says."""
    found = None if os.path.lexists(word) else _BEHIND.fullmatch(word)
    if found is not None and chosen is not None:
        raise click.UsageError("either FILE:LINE or -L")
    if found is not None:
        return found[1], (int(found[2]), int(found[3] or found[2]))
    return word, None if chosen is None else _lines(chosen)


def _lines(text: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(f"-L {text!r:.40} is no range of lines: 12, 12,20 or 12,+9")
    first = int(found[1])
    if found[3] is None:
        return first, first
    return first, first + int(found[3]) - 1 if found[2] else int(found[3])


def caught_up(home: Home, ask: Callable[[], _T], lines_of: Callable[[_T], Iterable[BlamedLine]]) -> _T:
    """What is known of lines; asked again where what was said in their turns had to be brought in first."""
    found = ask()
    authors = {author for line in lines_of(found) for author in (line.author, *line.authors) if author is not None}
    behind = {author.session for author in authors if author.prompt is None}
    return ask() if sum(_brought(home, session) for session in behind) else found


def _brought(home: Home, session: str) -> int:
    from turnlog.live.follow import catch_up

    try:
        return catch_up(home.store, session)
    except TurnlogError:
        return 0  # whose line it is can be told all the same
