"""`turnlog title`."""

from __future__ import annotations

import click

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, session_argument, shared, this_home
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import session_to_mark
from turnlog.errors import Invalid

CHANGES = shape.LOG
FIELDS = {"session": SESSION, "title": shape.text(null=True)}


@click.command()
@session_argument
@click.argument("text", nargs=-1)
@click.option("--remove", "-r", is_flag=True, help="Take it off: it is called what its agent calls it.")
@shared
def command(session: str | None, text: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Give a session a title, or print the one it has.

    Of another agent's session it is kept in our home: its own files stay as they are.

    \b
    turnlog title                          of this folder's newest conversation
    turnlog title @ Fix the login page     change it
    turnlog title k3f9 "The login page"    of another session
    """
    title = " ".join(text).strip()
    if text and (remove or not title):
        raise Invalid("a title without a word", hint='turnlog title @ "Fix the login page"')
    with this_home() as home:
        found = session_to_mark(home, session)
        now = found.call(title or None) if text or remove else found.title
        if as_json:
            print_json({"session": found.id, "title": now})
        elif text:
            print(one_line(f"session {found.name} is now “{now}”"))
        elif remove:
            print(one_line(f"session {found.name} is called what its agent calls it, if anything"))
        else:
            print(one_line(now or "(no title)"))
