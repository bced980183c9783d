"""`turnlog star`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.pick.session import session_to_mark
from turnlog.thread.home.foreignmarks import STAR
from turnlog.view.visible import one_line

GROUP = "Care", 3
CHANGES = shape.LOG
FIELDS = {"session": SESSION, "starred": shape.flag()}


@declare(SESSION_ARGUMENT, Option("--remove -r", "Take the star off."))
def command(session: str | None, remove: bool, as_json: bool) -> None:
    """Give a session a star, to find it again. A star is the tag `star`.

    For another agent's session, this is stored in your home; the agent's own files are not changed.

    \b
    turnlog star                  this folder's newest session
    turnlog star k3f9 --remove    take it off
    turnlog ls --all is:starred   what has one
    """
    with this_home() as home:
        target = session_to_mark(home, session or "@")
        target.tag([STAR], is_on=not remove)
        if as_json:
            print_json({"session": target.id, "starred": not remove})
        else:
            print(one_line(f"session {target.name} {'has no star' if remove else 'has a star'}"))
