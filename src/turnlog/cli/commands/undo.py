"""`turnlog undo`."""

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
    """Take back the last rewind, files and conversation together.

    Whatever was there before the rewind comes back, also what somebody had changed. A file that was changed since is a
    conflict and stays, unless --force. Several rewinds are taken back one by one, the newest first.

    \b
    turnlog undo                      show what it would do, and ask
    turnlog undo --yes                do it
    """
    take_back(context, "undo", session, How(dry_run, yes, as_json), force=force)
