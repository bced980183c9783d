"""`turnlog title`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import this_home
from turnlog.cli.pick.session import session_to_mark
from turnlog.errors import Invalid
from turnlog.view.visible import one_line

GROUP = "Care", 1
CHANGES = shape.LOG
FIELDS = {"session": SESSION, "title": shape.text(null=True)}


@declare(
    SESSION_ARGUMENT,
    Argument("text", "[TEXT]..."),
    Option("--remove -r", "Remove it: the agent's own title applies again."),
)
def command(session: str | None, text: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Give a session a title, or print the one it has.

    For another agent's session, this is stored in your home; the agent's own files are not changed.

    \b
    turnlog title                          of this folder's newest conversation
    turnlog title @ Fix the login page     change it
    turnlog title k3f9 "The login page"    of another session
    """
    title = " ".join(text).strip()
    if text and remove:
        raise UsageError("either TEXT or --remove")
    if text and not title:
        raise Invalid("a title without a word", hint='turnlog title @ "Fix the login page"')
    with this_home() as home:
        target = session_to_mark(home, session or "@" if remove else session)
        now = (title or None) if text or remove else target.title
        if text or remove:
            target.set_title(now)
        if as_json:
            print_json({"session": target.id, "title": now})
        elif text:
            print(one_line(f"session {target.name} is now “{now}”"))
        elif remove:
            print(one_line(f"session {target.name} has its agent's own title again, if there is one"))
        else:
            print(one_line(now or "(no title)"))
