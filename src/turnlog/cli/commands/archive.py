"""`turnlog archive`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.pick.session import session_to_mark
from turnlog.view.visible import one_line

GROUP = "Care", 5
CHANGES = shape.LOG
FIELDS = {"session": SESSION, "archived": shape.flag("whether listings leave it out")}


@declare(SESSION_ARGUMENT, Option("--remove -r", "Take it out of the archive."))
def command(session: str | None, remove: bool, as_json: bool) -> None:
    """Hide a session from listings. It can still be searched, counted and resumed.

    For another agent's session, this is stored in your home; the agent's own files are not changed.

    \b
    turnlog archive k3f9            hide it
    turnlog archive k3f9 --remove   show it again
    turnlog ls --all is:archived    what is hidden
    """
    with this_home() as home:
        target = session_to_mark(home, session or "@")
        target.archive(not remove)
        if as_json:
            print_json({"session": target.id, "archived": not remove})
        elif remove:
            print(one_line(f"session {target.name} is listed again"))
        else:
            print(one_line(f"session {target.name} is archived: `turnlog ls --all is:archived` lists it"))
