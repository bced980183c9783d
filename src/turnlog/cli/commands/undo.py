"""`turnlog undo`."""

from __future__ import annotations

import click

from turnlog.cli.draw.preview import refuse_without_terminal
from turnlog.cli.frame.option import refuse_interrupted, session_option, shared, this_home
from turnlog.cli.frame.progress import patience
from turnlog.cli.pick.session import session_to_change
from turnlog.cli.rewinding import REWOUND, How, make_move

FIELDS = REWOUND


@click.command()
@click.option("--dry-run", "-n", is_flag=True, help="Only show what would be done.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@session_option
@shared
@click.pass_context
def command(context: click.Context, dry_run: bool, yes: bool, session: str | None, as_json: bool) -> None:
    """Take back the last rewind, files and conversation together.

    Whatever was there before the rewind comes back, also what somebody had changed. A file that was changed since is a
    conflict and stays. Several rewinds are taken back one by one, the newest first.

    \b
    turnlog undo                      show what it would do, and ask
    turnlog undo --yes                do it
    """
    if not yes and not dry_run:
        refuse_without_terminal("undo", as_json=as_json)
    with this_home() as home:
        found = session_to_change(home, session)
        refuse_interrupted(found)
        with patience():
            plan = found.plan_undo()
        how = How(dry_run, yes, as_json)
        make_move(context, found, "undo", plan, found.undo, how, words=[], more={"dry_run": dry_run})
