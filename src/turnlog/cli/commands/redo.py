"""`turnlog redo`."""

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
    """Make the rewind again that was just undone.

    Possible until something else is said in the session. A file that was changed since is a conflict and stays.

    \b
    turnlog redo                      show what it would do, and ask
    turnlog redo --dry-run            only show it
    """
    if not yes and not dry_run:
        refuse_without_terminal("redo", as_json=as_json)
    with this_home() as home:
        found = session_to_change(home, session)
        refuse_interrupted(found)
        with patience():
            plan = found.plan_redo()
        how = How(dry_run, yes, as_json)
        make_move(context, found, "redo", plan, found.redo, how, words=[], more={"dry_run": dry_run})
