"""`turnlog redo`."""

from __future__ import annotations

import click

from turnlog.cli.frame import shape
from turnlog.cli.frame.command import session_option, shared
from turnlog.cli.rewinding import REWOUND, How, dry_run_option, force_option, take_back, yes_option

CHANGES = shape.WORKSPACE
FIELDS = REWOUND


@click.command()
@dry_run_option
@force_option
@yes_option
@session_option
@shared
@click.pass_context
def command(context: click.Context, dry_run: bool, force: bool, yes: bool, session: str | None, as_json: bool) -> None:
    """Make the rewind again that was just undone.

    Possible until something else is said in the session. A file that was changed since is a conflict and stays, unless
    --force.

    \b
    turnlog redo                      show what it would do, and ask
    turnlog redo --dry-run            only show it
    """
    take_back(context, "redo", session, How(dry_run, yes, as_json), force=force)
