"""`turnlog note`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.pick.session import session_to_mark
from turnlog.view.time import local_minute
from turnlog.view.visible import one_line

GROUP = "Care", 4
CHANGES = shape.LOG
FIELDS = {
    "session": SESSION,
    "notes": shape.items("all that the session has now", {"at": shape.time("when", null=True), "text": shape.text()}),
}


@declare(SESSION_ARGUMENT, Argument("text", "[TEXT]..."), is_read_only=lambda options: not options["text"])
def command(session: str | None, text: tuple[str, ...], as_json: bool) -> None:
    """Write a note on a session, or print those it has.

    `turnlog show` and `search` show it; no model sees it. For another agent's session, this is stored in your home; the
    agent's own files are not changed.

    \b
    turnlog note                           those of this folder's newest session
    turnlog note @ "here is the migration" one more
    turnlog note codex:0199 ask Ann        on a session of another agent
    """
    with this_home() as home:
        target = session_to_mark(home, session)
        if text:
            target.note(" ".join(text))
        if as_json:
            notes = [{"at": one.at, "text": one.text} for one in target.notes]
            print_json({"session": target.id, "notes": notes})
        elif text:
            print(one_line(f"noted on session {target.name}"))
        else:
            for one in target.notes:
                print(one_line(f"{local_minute(one.at)}  {one.text}" if one.at else one.text))
