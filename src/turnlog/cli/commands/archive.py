"""`turnlog archive`."""

from __future__ import annotations

import click

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, session_argument, shared, this_home
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import session_to_mark

CHANGES = shape.LOG
FIELDS = {"session": SESSION, "archived": shape.flag("whether listings leave it out")}


@click.command()
@session_argument
@click.option("--remove", "-r", is_flag=True, help="Take it out of the archive.")
@shared
def command(session: str | None, remove: bool, as_json: bool) -> None:
    """Hide a session from listings. It is still found by its words, counted, and can be resumed.

    Of another agent's session it is kept in our home: its own files stay as they are.

    \b
    turnlog archive k3f9            hide it
    turnlog archive k3f9 --remove   show it again
    turnlog ls --all is:archived    what is hidden
    """
    with this_home() as home:
        found = session_to_mark(home, session or "@")
        found.archive(not remove)
        if as_json:
            print_json({"session": found.id, "archived": not remove})
        elif remove:
            print(one_line(f"session {found.name} is listed again"))
        else:
            print(one_line(f"session {found.name} is archived: `turnlog ls --all is:archived` lists it"))
