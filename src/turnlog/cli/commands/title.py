"""`turnlog title`."""

from __future__ import annotations

import click

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, session_argument, shared, this_home
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import names, session_to_change
from turnlog.errors import Invalid

CHANGES = shape.LOG
FIELDS = {"session": SESSION, "title": shape.text(null=True)}


@click.command()
@session_argument
@click.argument("text", nargs=-1)
@shared
def command(session: str | None, text: tuple[str, ...], as_json: bool) -> None:
    """Give a session a title, or print the one it has.

    \b
    turnlog title                          of this folder's newest conversation
    turnlog title @ Fix the login page     change it
    turnlog title k3f9 "The login page"    of another session
    """
    title = " ".join(text).strip()
    if text and not title:
        raise Invalid("a title without a word", hint='turnlog title @ "Fix the login page"')
    with this_home() as home:
        if text:
            found = session_to_change(home, session)
            if found.title != title:
                found.set("title", title)
        else:
            found = home.resume(names(home).own(session, deleted=False))
        if as_json:
            print_json({"session": found.id, "title": found.title})
        elif text:
            print(one_line(f"session {found.handle} is now “{found.title}”"))
        else:
            print(one_line(found.title or "(no title)"))
