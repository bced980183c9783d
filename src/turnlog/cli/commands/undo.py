"""`turnlog undo`."""

from __future__ import annotations

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSION_OPTION, YES_OPTION, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.safetynet.rewinding import FORCE_OPTION, REWOUND, RewindOptions, take_back

GROUP = "Safety net", 8
CHANGES = shape.WORKSPACE
FIELDS = REWOUND


@declare(DRY_RUN_OPTION, FORCE_OPTION, YES_OPTION, SESSION_OPTION)
def command(dry_run: bool, force: bool, yes: bool, session: str | None, as_json: bool) -> None:
    """Take back the last rewind, files and conversation together.

    Everything is restored as it was before the rewind. A file that was changed since is a conflict and stays, unless
    --force is given. Several rewinds are taken back one by one, the newest first.

    \b
    turnlog undo                      show what it would do, and ask
    turnlog undo --yes                do it
    """
    take_back("undo", session, RewindOptions(dry_run, yes, as_json), force=force)
