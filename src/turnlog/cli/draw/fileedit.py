"""Changes to the settings of agents: which file, and line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff

from turnlog.cli.frame.terminal import coloured
from turnlog.machine.edit import FileEdit
from turnlog.reader.naming.here import tilde
from turnlog.view.visible import one_line, safe


def edit_lines(title: str, edits: Sequence[FileEdit], *, nothing: str, dry_run: bool) -> Iterator[str]:
    """Yield what became of the files of one agent; `nothing` is how it was already where none is changed."""
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
    """Yield what an edit changes, line by line."""
    before, after = ((data or b"").decode(errors="replace").splitlines() for data in (edit.before, edit.after))
    for number, line in enumerate(unified_diff(before, after, lineterm="", n=1)):
        if number > 1 and not line.startswith("@@"):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            yield coloured(f"  {safe(line)}", colour, sys.stdout)
