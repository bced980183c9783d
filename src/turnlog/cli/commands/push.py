"""`turnlog push`."""

from __future__ import annotations

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSIONS_AND_URL, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.pick.session import names
from turnlog.cli.transfer import (
    EVERYTHING_OPTION,
    IGNORED_OPTION,
    PUSH,
    TRANSFERRED,
    Direction,
    count_not_ours,
    new_home,
    other_home,
    print_transfer,
    raise_outcome,
    sessions_and_url,
)

GROUP = "Share", 3
CHANGES = shape.LOG
FIELDS = {
    **TRANSFERRED,
    "[not_ours]": shape.number("with --all: how many sessions of other agents were not sent: import them first"),
}


@declare(SESSIONS_AND_URL, EVERYTHING_OPTION, IGNORED_OPTION, DRY_RUN_OPTION)
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
    chosen, url = sessions_and_url(words, everything, "push")
    direction = Direction(PUSH, url=url, dry_run=dry_run, include_ignored=include_ignored)
    new_folder = new_home(url)
    with this_home() as home, progress_line():
        ids = None if everything else [names(home).own_id(word, deleted=False) for word in chosen]
        with other_home(url, must_exist=False) as other:
            is_whole = direction.run(home, other, ids)
    not_ours = count_not_ours() if everything and is_whole else None
    print_transfer([direction], dry_run=dry_run, as_json=as_json, not_ours=not_ours, new_folder=new_folder)
    raise_outcome([direction])
