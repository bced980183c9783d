"""The command line. `turnlog <name>` is `commands/<name>.py`: found by its file name, imported when it is asked for.

program    the commands, and what happens to their errors
option     what commands have in common: --json, --home, which session
text       untrusted text made safe for a terminal, cut and aligned
summary    an entry in one line, a message in several
finding    what `doctor` looks for, in plain words
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
