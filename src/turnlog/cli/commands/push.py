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
    "[not_ours]": shape.number("how many sessions of other agents stay, because they were not imported; with --all"),
}


@declare(LOCATIONS, EVERYTHING_OPTION, IGNORED_OPTION, DRY_RUN_OPTION)
def command(words: tuple[str, ...], everything: bool, include_ignored: bool, dry_run: bool, as_json: bool) -> None:
    """Bring sessions to another home: a folder, or a database.

    Only what is missing is sent, with checkpoints and their files; what a session builds on and its subagents come with
    it. Everything is verified. A session that went on there, too, loses nothing: what is new becomes a fork of theirs.
    Facts, notes and spending that came alone need no fork. What is in the trash there stays there. --all means all of
    ours: those of other agents go when they are imported, and it is said how many were not.

    What is in ignored files, which small ones checkpoints cover, stays here: there, their names are known and no more.
    --include-ignored sends it, also for checkpoints that are there already.

    Stopped anywhere, it goes on when it is done again. The exit code is 6 if something here is damaged; what can be
    read is there then.

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
