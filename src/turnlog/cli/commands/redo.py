"""`turnlog redo`."""

from __future__ import annotations

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSION_OPTION, YES_OPTION, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.safetynet.rewinding import FORCE_OPTION, REWOUND, RewindOptions, take_back

GROUP = "Safety net", 9
CHANGES = shape.WORKSPACE
FIELDS = REWOUND


@declare(DRY_RUN_OPTION, FORCE_OPTION, YES_OPTION, SESSION_OPTION)
def command(dry_run: bool, force: bool, yes: bool, session: str | None, as_json: bool) -> None:
    """Repeat the rewind that was just undone.

    This works until the session continues. A file that was changed since is a conflict and stays, unless --force is
    given.

    \b
    turnlog redo                      show what it would do, and ask
    turnlog redo --dry-run            only show it
    """
    take_back("redo", session, RewindOptions(dry_run, yes, as_json), force=force)
