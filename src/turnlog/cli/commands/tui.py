"""`turnlog tui`."""

from __future__ import annotations

import sys

from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, declare
from turnlog.cli.pick.browser import browse
from turnlog.cli.pick.catalog import query_of
from turnlog.errors import Unsupported

_HINT = "`turnlog ls --all` and `turnlog show` print the same"
CHANGES = shape.LOG
FIELDS = {"resume": shape.text("the session to resume; null for none", null=True)}


@declare(Argument("query", "[QUERY]..."))
def command(query: tuple[str, ...], as_json: bool) -> None:
    """Every session on this machine, in the terminal.

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
        from turnlog.cli.commands.resume import go_on

        go_on(outcome.name)
