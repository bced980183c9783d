"""`turnlog sync`."""

from __future__ import annotations

from turnlog.cli.frame import shape
from turnlog.cli.frame.command import declare
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import again, patience
from turnlog.cli.frame.shape import DRY_RUN
from turnlog.cli.transfer import (
    DRY_RUN_OPTION,
    IGNORED_OPTION,
    LOCATIONS,
    MOVED,
    Direction,
    in_either,
    not_ours,
    other_home,
    tell,
)
from turnlog.session.interior import interior
from turnlog.store import derived

CHANGES = shape.LOG
FIELDS = {
    "dry_run": DRY_RUN,
    "push": shape.one("as in `push`", MOVED),
    "pull": shape.one("as in `pull`", MOVED),
    "[not_ours]": shape.number("as in `push`"),
}


@declare(LOCATIONS, IGNORED_OPTION, DRY_RUN_OPTION)
def command(words: tuple[str, ...], include_ignored: bool, dry_run: bool, as_json: bool) -> None:
    """Push and pull: afterwards both homes have what either had.

    It transfers every session, or only those named. A session that continued on both sides keeps on each side what it
    has there, and the other side's part becomes a fork; of two titles the later one wins. Sessions in the trash of one
    side stay there. See `turnlog push`.

    \b
    turnlog sync postgresql://db/agents          this machine and the server
    turnlog sync k3f9 /mnt/backup/turnlog        one session
    """
    *names, url = words
    ways = [Direction(what, dry_run=dry_run, include_ignored=include_ignored) for what in ("push", "pull")]
    with this_home() as home, patience():
        derived.ids(interior(home).store)  # a home that cannot be read says so first
        with other_home(url, must_exist=False) as other:
            from turnlog.transfer.mover import sides

            here, there = (
                sides(interior(home).store, interior(other).store, in_either(home, other, names))
                if names
                else (None, None)
            )
            is_whole = ways[0].go(home, other, here)
            if is_whole:
                again()
                is_whole = ways[1].go(other, home, there)
    tell(ways, dry_run=dry_run, as_json=as_json, left=not_ours() if is_whole and not names else None)
