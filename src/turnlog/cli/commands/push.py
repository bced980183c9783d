"""`turnlog push`."""

from __future__ import annotations

from turnlog.cli.frame import shape
from turnlog.cli.frame.command import declare
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import patience
from turnlog.cli.pick.session import names
from turnlog.cli.transfer import (
    DRY_RUN_OPTION,
    EVERYTHING_OPTION,
    IGNORED_OPTION,
    LOCATIONS,
    TRANSFERRED,
    Direction,
    not_ours,
    other_home,
    split,
    tell,
)

CHANGES = shape.LOG
FIELDS = {
    **TRANSFERRED,
    "[not_ours]": shape.number("with --all: how many sessions of other agents were not sent: import them first"),
}


@declare(LOCATIONS, EVERYTHING_OPTION, IGNORED_OPTION, DRY_RUN_OPTION)
def command(words: tuple[str, ...], everything: bool, include_ignored: bool, dry_run: bool, as_json: bool) -> None:
    """Copy sessions to another home: a folder, or a database.

    Only missing data is sent, with checkpoints and their files; the sessions that a session builds on and its subagents
    are included. Everything is verified. If a session continued on both sides, nothing is lost: the new part becomes a
    fork there. Facts, notes and spending alone need no fork. Sessions in the trash there stay there. --all means all of
    Turnlog's own sessions; those of other agents have to be imported first, and the number of the others is reported.

    Contents of ignored files, of which checkpoints cover the small ones, stay here; only their names are sent.
    --include-ignored sends the contents, also for checkpoints that are already there.

    If it is interrupted, repeat it to continue. The exit code is 6 if something here is damaged; everything readable is
    sent.

    \b
    turnlog push k3f9 postgresql://db/agents     one session to a server
    turnlog push --all /mnt/backup/turnlog       everything to another folder
    turnlog push --all --dry-run postgresql://db/agents
    """
    chosen, url = split(words, everything, "push")
    way = Direction("push", dry_run=dry_run, include_ignored=include_ignored)
    with this_home() as home, patience():
        ids = None if everything else [names(home).own(word, deleted=False) for word in chosen]
        with other_home(url, must_exist=False) as other:
            is_whole = way.go(home, other, ids)
    tell([way], dry_run=dry_run, as_json=as_json, left=not_ours() if everything and is_whole else None)
