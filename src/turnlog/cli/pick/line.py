"""Lines of a file as people type them: `FILE:12`, `FILE:12,20`, `-L 12,20`, `-L 12,+9`."""

from __future__ import annotations

import os
import re

import click

_BEHIND = re.compile(r"(.+):(\d{1,9})(?:,(\d{1,9}))?", re.DOTALL)
_RANGE = re.compile(r"(\d{1,9})(?:,(\+?)(\d{1,9}))?")


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
