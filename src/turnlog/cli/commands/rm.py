"""`turnlog rm`."""

from __future__ import annotations

import sys
from typing import Any

import click

from turnlog.cli.draw.preview import ask, can_ask
from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, moment, one_line
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import home_location, print_json, shared, this_home
from turnlog.cli.pick.session import names
from turnlog.errors import Invalid
from turnlog.thread.report import Info

FIELDS = {"purged": "whether for good", "sessions": "`id` and `handle` of each"}


@click.command()
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...")
@click.option("--purge", is_flag=True, help="For good: nothing brings it back. Asks first.")
@click.option("--deleted", is_flag=True, help="With --purge: what is in the trash, where a session has the same id.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@shared
@click.pass_context
def command(
    context: click.Context, sessions: tuple[str, ...], purge: bool, deleted: bool, yes: bool, as_json: bool
) -> None:
    """Put sessions into the trash, or remove them for good.

    `turnlog restore` brings back what is in the trash. Forks of a session keep working either way. Files of other
    agents are never touched. What --purge removes is gone from the index as well when the command is done.

    \b
    turnlog rm k3f9                   into the trash
    turnlog rm --purge k3f9           for good, also out of the trash
    turnlog ls --deleted              what is in the trash
    """
    if deleted and not purge:
        raise click.UsageError("--deleted goes with --purge")
    if purge:
        refuse_agent("`rm --purge`")
    with this_home() as home:
        own = names(home).own
        found = (home.find(name, deleted=True) if deleted else own(name, deleted=purge) for name in sessions)
        ids = list(dict.fromkeys(found))
        gone, live = ({row.id: row for row in home.sessions(deleted=is_it)} for is_it in (True, False))
        rows = {**live, **gone} if deleted else {**gone, **live}
        if purge and not yes:
            _refuse_unasked(as_json=as_json)
            _show([rows[id] for id in ids if id in rows])
            if not ask(f"remove {'it' if len(ids) == 1 else count(len(ids), 'session')} for good?"):
                print("nothing was removed", file=sys.stderr)
                context.exit(1)
        for session_id in ids:
            if purge:
                home.purge(session_id, deleted=True if deleted else None)
            else:
                home.delete(session_id)
    if purge:
        from turnlog.cli.pick.catalog import forget_purged

        forget_purged(home_location())
    told: list[dict[str, Any]] = [{"id": id, "handle": rows[id].handle if id in rows else id} for id in ids]
    if as_json:
        print_json({"purged": purge, "sessions": told})
        return
    for row in told:
        handle = one_line(row["handle"])
        done = "is gone for good" if purge else f"is in the trash; `turnlog restore {handle}` brings it back"
        print(f"session {handle} {done}")


def _refuse_unasked(*, as_json: bool) -> None:
    if not can_ask(as_json=as_json):
        where = "with --json it cannot" if as_json else "there is no terminal"
        raise Invalid(f"rm --purge asks first, and {where}", hint="--yes does it without asking")


def _show(rows: list[Info]) -> None:
    cells = [(row.handle, moment(row.updated_at)[:16], str(row.seq), row.title or "") for row in rows]
    for line in table(("SESSION", "LAST ENTRY", "SEQ", "TITLE"), cells, right=(2,)):
        print(line, file=sys.stderr)
