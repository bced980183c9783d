"""`turnlog tui`."""

from __future__ import annotations

import sys

import click

from turnlog.cli.frame import shape
from turnlog.cli.frame.command import shared
from turnlog.cli.pick.browser import browse
from turnlog.cli.pick.catalog import query_of
from turnlog.errors import Invalid, Unsupported

_HINT = "`turnlog ls --all` and `turnlog show` print the same"
CHANGES = shape.LOG
FIELDS: shape.Fields = {}


@click.command()
@click.argument("query", nargs=-1)
@shared
def command(query: tuple[str, ...], as_json: bool) -> None:
    """Every session on this machine, in the terminal.

    A list that every letter narrows, in the words of `turnlog search`; Enter opens a session to read and to follow,
    with what each turn changed and a way back. `?` explains the keys of where you are.

    Needs the extra: pip install 'turnlog[tui]'.

    \b
    turnlog tui
    turnlog tui agent:codex since:7d
    """
    if as_json:
        raise Invalid("`turnlog tui` is for people", hint="`turnlog ls --all --json` lists sessions for programs")
    if not sys.stdout.isatty():
        raise Unsupported("`turnlog tui` needs a terminal, and stdout is none", hint=_HINT)
    outcome = browse(query_of(query), what="`turnlog tui`", hint=_HINT, is_picking=False)
    if outcome.is_resumed:
        from turnlog.cli.commands.resume import go_on

        go_on(outcome.name)
