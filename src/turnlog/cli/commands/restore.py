"""`turnlog restore`."""

from __future__ import annotations

from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.exitcode import Misused
from turnlog.cli.frame.home import this_home
from turnlog.errors import NotFound
from turnlog.log.ids import handle_of

CHANGES = shape.LOG
FIELDS = {"sessions": shape.items("one each", {"id": shape.text(), "handle": shape.text()})}


@declare(
    Argument("sessions", "SESSION..."),
    Option("--as ID", "Under another id, if the old one is taken.", name="new_id"),
)
def command(sessions: tuple[str, ...], new_id: str | None, as_json: bool) -> None:
    """Bring sessions back from the trash.

    \b
    turnlog ls --deleted              what is in the trash
    turnlog restore k3f9
    turnlog restore nightly --as nightly-old
    """
    if new_id is not None and len(sessions) != 1:
        raise Misused("--as gives one session another id")
    with this_home() as home:
        ids: list[str] = []
        for name in sessions:
            try:
                ids.append(home.find(name, deleted=True))
            except NotFound as error:
                hint = "`turnlog ls --deleted` shows what is in the trash"
                raise type(error)(error.message.replace("no session", "no deleted session"), hint=hint) from None
        ids = list(dict.fromkeys(ids))
        for session_id in ids:
            home.restore(session_id, as_=new_id)
        ids = ids if new_id is None else [new_id]
    if as_json:
        print_json({"sessions": [{"id": id, "handle": handle_of(id)} for id in ids]})
        return
    for session_id in ids:
        print(one_line(f"session {handle_of(session_id)} is back"))
