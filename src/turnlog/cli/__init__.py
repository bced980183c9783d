"""The command line. `turnlog <name>` is `commands/<name>.py`: found by its file name, imported when it is asked for.

program    the commands, for click
plain      commands that do not wait for click
ending     exit codes, and what happens to errors
dashboard  `turnlog` alone
asking     the catalog, and the folder that is meant
cards      sessions in a table
cells      times, money and tokens in cells; tables of many rows
option     what commands have in common: --json, --home, what they print
name       which session is meant, ours or another agent's
several    several that fit, as an error that lists them
complete   what a shell may complete
fields     what --json says, field by field
look       a session to read from, however large
text       untrusted text made safe for a terminal, cut and aligned
summary    an entry in one line
screen     how a session is drawn on this terminal
part       which part of a conversation is meant
pager      long output through $PAGER
raw        a session to the letter
written    a session as Markdown, HTML, JSON, without its secrets
finding    what `doctor` looks for, in plain words
target     places in a session as people type them
change     changed files: how many, which, and the lines
preview    what a rewind is about to do, and the question
move       rewind, undo and redo: preview, question, action, report
child      another program in the foreground, for `run`
progress   a line on stderr for what takes long, and Ctrl-C that waits
elsewhere  a session of another agent, read where it lies
problem    what was wrong with other agents' sessions, and what they could not take
reference  docs/cli.md
"""

from __future__ import annotations

import os
import sys

from turnlog.version import __version__

QUICK = ("ls", "search", "usage")
"""Commands that have `TAKES`: see `plain`."""


def _printed(line: str) -> bool:
    """Where it cannot be printed, somebody else says why."""
    try:
        print(line, flush=True)
    except OSError:
        return False
    return sys.stdout is not None  # pyright: ignore[reportUnnecessaryComparison]


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"] and _printed(f"turnlog {__version__}"):
        return  # needs nothing else, so it waits for nothing else
    if "_TURNLOG_COMPLETE" in os.environ:
        from turnlog.cli.complete import answer

        return answer(os.environ["_TURNLOG_COMPLETE"], arguments)
    code = None
    if not arguments or arguments[0] in QUICK:
        from turnlog.cli.plain import answered

        code = answered(arguments)
    if code is None:
        from turnlog.cli.program import run

        code = run(arguments)
    sys.exit(code)
