"""`turnlog fork`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import imported_session
from turnlog.reader.markable import OwnMarkable
from turnlog.reader.place import Place, place_of
from turnlog.thread.reader import history_of
from turnlog.view.number import count
from turnlog.view.visible import one_line, quoted

GROUP = "Care", 6
CHANGES = shape.LOG
FIELDS = {
    "session": shape.text("the id of the new session"),
    "handle": shape.text("its short name"),
    "parent": shape.text("the id of the session that it continues"),
    "at": shape.number("the entry that it continues from"),
    "name": shape.text("the name of the fork", null=True),
    "messages": shape.number("how many messages it begins with"),
}


@declare(
    SESSION_ARGUMENT,
    Option("--at PLACE", 'An entry (12), "turn:3", or the label of a checkpoint. [default: its end]'),
    Option("--name NAME", "A name for the fork."),
)
def command(session: str | None, at: str | None, name: str | None, as_json: bool) -> None:
    """Begin a new session at the end of another, or in its middle.

    The new session continues the conversation from there; nothing is copied, and the other session is not changed.
    "turn:3" is the point before turn 3 began. No file is touched. A session of another agent is imported first.

    \b
    turnlog fork                   try something else from here
    turnlog fork k3f9 --at turn:3  another way to go on, from before turn 3
    turnlog fork codex:0199 --name "plan b"
    """
    from turnlog.exchange.exporting.handover import knows_agent

    with this_home() as home:
        parent = imported_session(home, session or "@")
        start = place_of(parent, at) if at is not None else Place(parent.seq, "the end")
        forked = parent.fork(start.seq, name=name)
        OwnMarkable(forked).archive(False)  # somebody goes on with it, whatever became of the other
        messages = len(forked.messages())
        is_known = knows_agent(forked)
        fork = history_of(forked).fork
    if as_json:
        data = {
            "session": forked.id,
            "handle": forked.handle,
            "parent": parent.id,
            "at": start.seq,
            "name": fork and fork.name,
        }
        print_json({**data, "messages": messages})
        return
    where = one_line(f"{start.words} of session {parent.handle}")
    print(f"session {one_line(forked.handle)}: goes on from {where}, with {count(messages, 'message')}")
    handle = quoted(forked.handle)
    agent = "" if is_known else " --in AGENT"
    tell(f"`turnlog resume {handle}{agent}` resumes it, `turnlog rm {handle}` removes it")
