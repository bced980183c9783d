"""`turnlog restore`."""

from __future__ import annotations

from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.each import act_on_each
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import this_home
from turnlog.cli.pick.session import names
from turnlog.log.ids import handle_of
from turnlog.view.visible import one_line

GROUP = "Care", 12
CHANGES = shape.LOG
FIELDS = {"sessions": shape.items("one each", {"id": shape.text(), "handle": shape.text()})}


@declare(
    Argument("sessions", "SESSION...", kind="deleted"),
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
        raise UsageError("--as gives one session another id")
    with this_home() as home:
        ids = list(dict.fromkeys(names(home).deleted_id(name) for name in sessions))
        outcome = act_on_each(ids, lambda session_id: home.restore(session_id, as_=new_id))
        ids = outcome.done if new_id is None else [new_id]
    if as_json:
        print_json({"sessions": [{"id": id, "handle": handle_of(id)} for id in ids]})
    else:
        for session_id in ids:
            print(one_line(f"session {handle_of(session_id)} is back"))
    outcome.raise_error()
