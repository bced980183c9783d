"""Changes to the settings of agents: which file, and line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import TextIO

from turnlog.cli.frame.terminal import coloured
from turnlog.machine.edit import FileEdit
from turnlog.reader.naming.here import tilde
from turnlog.view.visible import one_line, safe


def edit_lines(title: str, edits: Sequence[FileEdit], *, nothing: str, dry_run: bool) -> Iterator[str]:
    """Yield how the files of one agent were changed; `nothing` describes the agent if none was."""
    if not edits:
        yield f"{title}: {nothing}"
    for edit in edits:
        yield one_line(f"{title}: {tilde(edit.path)} {'would be ' if dry_run else ''}{edit.change}")
        if dry_run:
            yield from difference(edit)


def print_not_here(titles: Iterable[str]) -> None:
    """Print which agents are not on this machine, if there are any."""
    listed = ", ".join(titles)
    if listed:
        print(coloured(f"not here: {listed}", "dim", sys.stdout))


def difference(edit: FileEdit) -> Iterator[str]:
    """Yield what an edit changes, line by line, for the screen."""
    before, after = ((data or b"").decode(errors="replace") for data in (edit.before, edit.after))
    return painted(changed_lines(before, after), sys.stdout)


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the changed lines of a text as a diff has them, each with one line around it, without the head."""
    for number, line in enumerate(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)):
        if number > 1 and not line.startswith("@@"):
            yield line


def painted(lines: Iterable[str], stream: TextIO) -> Iterator[str]:
    """Yield lines of a diff, indented and in colours, with what could drive a terminal escaped."""
    for line in lines:
        colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
        yield coloured(f"  {safe(line)}", colour, stream)
