"""`turnlog sync`."""

from __future__ import annotations

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSIONS_AND_URL, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import progress_line, restart_clock
from turnlog.cli.transfer import (
    IGNORED_OPTION,
    MOVED,
    PULL,
    PUSH,
    Direction,
    count_not_ours,
    in_either,
    new_home,
    other_home,
    print_transfer,
    raise_outcome,
)
from turnlog.session.interior import interior
from turnlog.store import derived

GROUP = "Share", 5
CHANGES = shape.LOG
FIELDS = {
    "dry_run": DRY_RUN,
    "push": shape.one("as in `push`", MOVED),
    "pull": shape.one("as in `pull`", MOVED),
    "[not_ours]": shape.number("as in `push`"),
}


@declare(SESSIONS_AND_URL, IGNORED_OPTION, DRY_RUN_OPTION)
def command(words: tuple[str, ...], include_ignored: bool, dry_run: bool, as_json: bool) -> None:
    """Push and pull: afterwards both homes have what either had.

    It transfers every session, or only those named. A session that continued on both sides keeps on each side what it
    has there, and the other side's part becomes a fork; of two titles the later one wins. Sessions in the trash of one
    side stay there. If the folder has no home yet, one is made, and a note says so. See `turnlog push`.

    \b
    turnlog sync postgresql://db/agents          this machine and the server
    turnlog sync k3f9 /mnt/backup/turnlog        one session
    """
    *names, url = words
    push, pull = (Direction(way, url=url, dry_run=dry_run, include_ignored=include_ignored) for way in (PUSH, PULL))
    new_folder = new_home(url)
    with this_home() as home, progress_line():
        derived.ids(interior(home).store)  # a home that cannot be read says so first
        with other_home(url, must_exist=False) as other:
            from turnlog.transfer.mover import sides

            here, there = (
                sides(interior(home).store, interior(other).store, in_either(home, other, names))
                if names
                else (None, None)
            )
            is_whole = push.run(home, other, here)
            if is_whole:
                restart_clock()
                is_whole = pull.run(other, home, there)
    not_ours = count_not_ours() if is_whole and not names else None
    print_transfer([push, pull], dry_run=dry_run, as_json=as_json, not_ours=not_ours, new_folder=new_folder)
    raise_outcome([push, pull])
