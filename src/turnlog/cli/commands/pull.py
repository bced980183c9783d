"""`turnlog pull`."""

from __future__ import annotations

from turnlog.cli.frame import shape
from turnlog.cli.frame.command import declare
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import patience
from turnlog.cli.transfer import (
    DRY_RUN_OPTION,
    EVERYTHING_OPTION,
    IGNORED_OPTION,
    LOCATIONS,
    TRANSFERRED,
    Direction,
    other_home,
    split,
    tell,
)
from turnlog.session.interior import interior
from turnlog.store import derived

CHANGES = shape.LOG
FIELDS = TRANSFERRED


@declare(LOCATIONS, EVERYTHING_OPTION, IGNORED_OPTION, DRY_RUN_OPTION)
def command(words: tuple[str, ...], everything: bool, include_ignored: bool, dry_run: bool, as_json: bool) -> None:
    """Copy sessions here from another home: a folder, or a database.

    The same as `turnlog push`, in the other direction; SESSION is an id there, or the beginning of one.

    \b
    turnlog pull k3f9 postgresql://db/agents     one session, to go on with here
    turnlog pull --all /mnt/backup/turnlog       everything from another folder
    turnlog pull latest postgresql://db/agents   the newest there
    """
    names, url = split(words, everything, "pull")
    way = Direction("pull", dry_run=dry_run, include_ignored=include_ignored)
    with this_home() as home, patience():
        derived.ids(interior(home).store)  # a home that cannot be read says so first
        with other_home(url, must_exist=True) as other:
            way.go(other, home, None if everything else [other.find(name) for name in names])
    tell([way], dry_run=dry_run, as_json=as_json)
