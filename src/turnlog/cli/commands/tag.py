"""`turnlog tag`."""

from __future__ import annotations

from typing import cast

import click

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import print_json, session_argument, shared, this_home
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import names, session_to_change
from turnlog.errors import Invalid
from turnlog.session import Session

CHANGES = shape.LOG
FIELDS = {"session": SESSION, "tags": shape.texts("all that it has now")}


@click.command()
@session_argument
@click.argument("tags", nargs=-1)
@click.option("--remove", "-r", is_flag=True, help="Take them off.")
@shared
def command(session: str | None, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Tag a session, or print the tags it has. `turnlog ls tag:NAME` and `turnlog search` find it by them.

    \b
    turnlog tag                       those of this folder's newest conversation
    turnlog tag @ urgent login        give it two more
    turnlog tag k3f9 --remove urgent  take one off another session
    turnlog ls --all tag:urgent       what has it
    """
    wanted = [_checked(tag) for tag in tags]
    if remove and not wanted:
        raise Invalid("which tags to remove was not said", hint="`turnlog tag` prints those there are")
    with this_home() as home:
        found = session_to_change(home, session) if wanted else home.resume(names(home).own(session, deleted=False))
        before = _tags(found)
        after = [tag for tag in before if tag not in wanted]
        if not remove:
            after = [*before, *(tag for tag in dict.fromkeys(wanted) if tag not in before)]
        if after != before:
            found.set("tags", after)
        if as_json:
            print_json({"session": found.id, "tags": after})
        elif wanted:
            told = " ".join(f"#{tag}" for tag in after) or "no tags"
            print(one_line(f"session {found.handle}: {told}"))
        else:
            for tag in after:
                print(one_line(tag))


def _tags(found: Session) -> list[str]:
    tags = found.facts.get("tags")
    return [str(tag) for tag in cast("list[object]", tags)] if isinstance(tags, list) else []


def _checked(tag: str) -> str:
    name = tag.removeprefix("#")
    if not name or name != "".join(name.split()) or "," in name or '"' in name or not name.isprintable():
        raise Invalid(f"the tag {tag!r:.80}", hint="one word, without blanks, commas and quotes")
    return name
