"""`turnlog rm`."""

from __future__ import annotations

import sys
from typing import Any

from turnlog.cli.draw.question import ask, refuse_without_terminal
from turnlog.cli.draw.receipt import LEFT, REMOVED, print_receipt, receipt_fields, show_sessions
from turnlog.cli.draw.text import count, one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.agentshell import is_agents, note_agent, refuse_agent
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.exitcode import Left, Misused
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.pick.session import names
from turnlog.thread.removal.purging import Purged

CHANGES = shape.LOG
FIELDS = {
    "purged": shape.flag("whether it was removed for good"),
    "sessions": shape.items("one each", {"id": shape.text(), "handle": shape.text()}),
    "removed": shape.each("with --purge, everything that was removed", REMOVED),
    "left": shape.each("what stays, and why", LEFT),
    "blobs": shape.number("how many files and long texts were removed with it"),
    "freed_bytes": shape.number("their size"),
}


@declare(
    Argument("sessions", "SESSION..."),
    Option("--purge", "For good: nothing brings it back. Asks first."),
    Option("--deleted", "With --purge: the one in the trash, if a session has the same id."),
    Option("--forks", "With --purge: its forks as well, which contain its messages before the fork."),
    Option("--subagents", "With --purge: the sessions of its subagents as well."),
    Option("--yes -y", "Do not ask."),
)
def command(
    sessions: tuple[str, ...],
    purge: bool,
    deleted: bool,
    forks: bool,
    subagents: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move sessions into the trash, or remove them for good.

    `turnlog restore` brings back what is in the trash. Forks of a session keep working either way. Files of other
    agents are never touched. --purge also removes them from the index, and names what forks and subagents still have of
    them. `turnlog erase` removes single messages, `turnlog gc --older-than` old sessions.

    \b
    turnlog rm k3f9                   into the trash
    turnlog rm --purge k3f9           for good, also out of the trash
    turnlog rm --purge --forks --subagents k3f9
    turnlog ls --deleted              what is in the trash
    """
    for name, is_set in (("--deleted", deleted), ("--forks", forks), ("--subagents", subagents)):
        if is_set and not purge:
            raise Misused(f"{name} goes with --purge")
    if purge:
        refuse_agent("`rm --purge`")
    with this_home() as home:
        own = names(home).own
        chosen = (home.find(name, deleted=True) if deleted else own(name, deleted=purge) for name in sessions)
        ids = list(dict.fromkeys(chosen))
        gone, live = ({row.id: row for row in home.sessions(deleted=is_it)} for is_it in (True, False))
        rows = {**live, **gone} if deleted else {**gone, **live}
        if purge and not yes:
            refuse_without_terminal("rm --purge asks first", as_json=as_json)
            show_sessions([rows[id] for id in ids if id in rows])
            more = " with its " * (forks or subagents) + " and ".join(["forks"] * forks + ["subagents"] * subagents)
            if not ask(f"remove {'it' if len(ids) == 1 else count(len(ids), 'session')}{more} for good?"):
                print("nothing was removed", file=sys.stderr)
                raise Left(1)
        purged: list[Purged] = []
        for session_id in ids:
            if not purge:
                if is_agents():
                    with home.resume(session_id) as session:
                        note_agent(session, "rm")
                home.delete(session_id)
            elif all(one.id != session_id for receipt in purged for one in receipt.removed):
                is_it = True if deleted else None
                purged.append(home.purge(session_id, deleted=is_it, subagents=subagents, forks=forks))
    if purge:
        from turnlog.cli.pick.catalog import forget_purged

        forget_purged(home_location())
    documents: list[dict[str, Any]] = [{"id": id, "handle": rows[id].handle if id in rows else id} for id in ids]
    if as_json:
        print_json({"purged": purge, "sessions": documents, **receipt_fields(purged)})
        return
    for row in documents:
        handle = one_line(row["handle"])
        became = "is gone for good" if purge else f"is in the trash; `turnlog restore {handle}` brings it back"
        print(f"session {handle} {became}")
    print_receipt(purged)
