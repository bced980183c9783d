"""The command line. `turnlog <name>` is `commands/<name>.py`: found by its file name, imported when it is asked for.

program    the commands, and what happens to their errors
option     what commands have in common: --json, --home, which session
look       a session to read from, however large
text       untrusted text made safe for a terminal, cut and aligned
summary    an entry in one line, a message in several
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

import sys

from turnlog.version import __version__


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"turnlog {__version__}")  # needs nothing else, so it waits for nothing else
        return
    from turnlog.cli.program import run

    sys.exit(run(arguments))
