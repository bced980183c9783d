"""`turnlog statusline`."""

from __future__ import annotations

import os

from turnlog.cli.frame.command import declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import note, tell
from turnlog.cli.statusline import answer, run

GROUP = "Find", 11
CHANGES = shape.NOTHING
FIELDS = {"line": shape.text("what it prints without --json")}
_SETTING = '"statusLine": {"type": "command", "command": "turnlog statusline"}'


@declare()
def command(as_json: bool) -> None:
    """Print one line for the status line of Claude Code. It shows context, cost and limits.

    It reads Claude Code's data from stdin. The cost of today is that of all agents, as in `turnlog usage`, and about a
    minute old; the rest of a window is what Claude Code itself reports. No error is ever printed. In
    `~/.claude/settings.json`:

    \b
    "statusLine": {"type": "command", "command": "turnlog statusline"}
    """
    if os.isatty(0):
        note("Claude Code calls this and says on stdin what it is about; in its settings:")
        tell(f"  {_SETTING}", exact=True)
    elif as_json:
        print_json({"line": answer(home_location())})
    else:
        run(home_location())
