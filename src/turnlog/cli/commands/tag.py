"""`turnlog tag`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.pick.session import session_to_mark
from turnlog.errors import Invalid
from turnlog.view.visible import one_line

GROUP = "Care", 2
CHANGES = shape.LOG
FIELDS = {"session": SESSION, "tags": shape.texts("all that the session has now")}


@declare(SESSION_ARGUMENT, Argument("tags", "[TAGS]..."), Option("--remove -r", "Take them off."))
def command(session: str | None, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Tag a session, or print the tags it has. `turnlog ls tag:NAME` and `turnlog search` find it by them.

    For another agent's session, this is stored in your home; the agent's own files are not changed.

    \b
    turnlog tag                       those of this folder's newest conversation
    turnlog tag @ urgent login        give it two more
    turnlog tag k3f9 --remove urgent  take one off another session
    turnlog tag codex:0199 login      one of another agent
    turnlog ls --all tag:urgent       what has it
    """
    wanted = [_checked(tag) for tag in tags]
    if remove and not wanted:
        raise Invalid("no tag was given", hint="`turnlog tag` prints the tags there are")
    with this_home() as home:
        target = session_to_mark(home, session)
        after = target.tag(wanted, is_on=not remove)
        if as_json:
            print_json({"session": target.id, "tags": after})
        elif wanted:
            listed = " ".join(f"#{tag}" for tag in after) or "no tags"
            print(one_line(f"session {target.name}: {listed}"))
        else:
            for tag in after:
                print(one_line(tag))


def _checked(tag: str) -> str:
    name = tag.removeprefix("#")
    if not name or name != "".join(name.split()) or "," in name or '"' in name or not name.isprintable():
        raise Invalid(f"the tag {tag!r:.80}", hint="one word, without blanks, commas and quotes")
    return name
