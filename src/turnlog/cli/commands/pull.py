"""`turnlog pull`."""

from __future__ import annotations

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSIONS_AND_URL, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.transfer import (
    EVERYTHING_OPTION,
    IGNORED_OPTION,
    PULL,
    TRANSFERRED,
    Direction,
    other_home,
    print_transfer,
    raise_outcome,
    sessions_and_url,
)
from turnlog.session.interior import interior
from turnlog.store import derived

GROUP = "Share", 4
CHANGES = shape.LOG
FIELDS = TRANSFERRED


@declare(SESSIONS_AND_URL, EVERYTHING_OPTION, IGNORED_OPTION, DRY_RUN_OPTION)
def command(words: tuple[str, ...], everything: bool, include_ignored: bool, dry_run: bool, as_json: bool) -> None:
    """Copy sessions here from another home: a folder, or a database.

    The same as `turnlog push`, in the other direction; SESSION is an id there, or the beginning of one.

    \b
    turnlog pull k3f9 postgresql://db/agents     one session, to go on with here
    turnlog pull --all /mnt/backup/turnlog       everything from another folder
    turnlog pull latest postgresql://db/agents   the newest there
    """
    names, url = sessions_and_url(words, everything, "pull")
    direction = Direction(PULL, url=url, dry_run=dry_run, include_ignored=include_ignored)
    with this_home() as home, progress_line():
        derived.ids(interior(home).store)  # a home that cannot be read says so first
        with other_home(url, must_exist=True) as other:
            direction.run(other, home, None if everything else [other.find(name) for name in names])
    print_transfer([direction], dry_run=dry_run, as_json=as_json)
    raise_outcome([direction])
