"""`turnlog star`."""

from __future__ import annotations

import click

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, session_argument, shared, this_home
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import session_to_mark
from turnlog.thread.marking import STAR

CHANGES = shape.LOG
FIELDS = {"session": SESSION, "starred": shape.flag()}


@click.command()
@session_argument
@click.option("--remove", "-r", is_flag=True, help="Take the star off.")
@shared
def command(session: str | None, remove: bool, as_json: bool) -> None:
    """Give a session a star, to find it again. A star is the tag `star`.

    Of another agent's session it is kept in our home: its own files stay as they are.

    \b
    turnlog star                  this folder's newest session
    turnlog star k3f9 --remove    take it off
    turnlog ls --all is:starred   what has one
    """
    with this_home() as home:
        found = session_to_mark(home, session or "@")
        found.tag([STAR], is_on=not remove)
        if as_json:
            print_json({"session": found.id, "starred": not remove})
        else:
            print(one_line(f"session {found.name} {'has no star' if remove else 'has a star'}"))
