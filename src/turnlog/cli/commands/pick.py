"""`turnlog pick`."""

from __future__ import annotations

from turnlog.cli.frame.command import Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.pick.browser import choose_session
from turnlog.cli.pick.query import query_of

GROUP = "Find", 5
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
    name = choose_session(query_of(query), what="`turnlog pick`")
    if as_json:
        print_json({"name": name})
    else:
        print(name)
