"""`turnlog tui`."""

from __future__ import annotations

import sys

from turnlog.cli.frame.command import Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.pick.browser import browse
from turnlog.cli.pick.query import query_of
from turnlog.errors import Unsupported

_HINT = "`turnlog ls --all` and `turnlog show` print the same"
GROUP = "Find", 4
CHANGES = shape.OTHERS
FIELDS = {"resume": shape.text("the session to resume; null for none", null=True)}


@declare(Argument("query", "[QUERY]..."))
def command(query: tuple[str, ...], as_json: bool) -> None:
    """Show every session on this machine, in the terminal.

    Typing narrows the list, with the syntax of `turnlog search`; Enter opens a session to read and to follow, with the
    changes of each turn and a way to rewind. `?` explains the keys of the current screen. With --json, `r` in a session
    prints the session to resume instead of resuming it.

    Needs the extra: pip install 'turnlog[tui]'.

    \b
    turnlog tui
    turnlog tui agent:codex since:7d
    """
    if not as_json and not sys.stdout.isatty():
        raise Unsupported("`turnlog tui` needs a terminal, and stdout is none", hint=_HINT)
    outcome = browse(query_of(query), what="`turnlog tui`", hint=_HINT, is_picking=False)
    if as_json:
        print_json({"resume": outcome.name if outcome.is_resumed else None})
    elif outcome.is_resumed:
        from turnlog.cli.resuming import ResumeRequest, resume

        resume(ResumeRequest(outcome.name), is_run=True, as_json=False)
