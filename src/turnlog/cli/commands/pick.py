"""`turnlog pick`."""

from __future__ import annotations

from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, declare
from turnlog.cli.pick.browser import picked
from turnlog.cli.pick.catalog import query_of

CHANGES = shape.NOTHING
FIELDS = {"name": shape.text("the name of the chosen session")}


@declare(Argument("query", "[QUERY]..."))
def command(query: tuple[str, ...], as_json: bool) -> None:
    """Choose a session on the terminal, and print its name.

    It shows the list of `turnlog tui`: typing narrows it, and Enter prints only the `name` of `turnlog ls --json` on
    stdout. It is drawn on stderr, so stdout may be a pipe. Escape in an empty field ends with exit code 1.

    Needs the extra: pip install 'turnlog[tui]'.

    \b
    turnlog resume "$(turnlog pick)" --exec
    turnlog export "$(turnlog pick agent:codex)" --to html
    """
    name = picked(query_of(query), what="`turnlog pick`")
    if as_json:
        print_json({"name": name})
    else:
        print(name)
