"""`turnlog statusline`."""

from __future__ import annotations

import os
import sys

from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import declare
from turnlog.cli.frame.home import home_location
from turnlog.cli.statusline import answer, run

CHANGES = shape.NOTHING
FIELDS = {"line": shape.text("what it prints without --json")}
_SETTING = '"statusLine": {"type": "command", "command": "turnlog statusline"}'


@declare()
def command(as_json: bool) -> None:
    """Print one line for the status line of Claude Code: context, cost, limits.

    It reads Claude Code's data from stdin. The cost of today is that of all agents, as in `turnlog usage`, and about a
    minute old; the rest of a window is what Claude Code itself reports. No error is ever printed. In
    `~/.claude/settings.json`:

    \b
    "statusLine": {"type": "command", "command": "turnlog statusline"}
    """
    if os.isatty(0):
        print("note: Claude Code calls this and says on stdin what it is about; in its settings:", file=sys.stderr)
        print(f"  {_SETTING}", file=sys.stderr)
    elif as_json:
        print_json({"line": answer(home_location())})
    else:
        run(home_location())
