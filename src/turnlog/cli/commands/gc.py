"""`turnlog gc`."""

from __future__ import annotations

import click

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, size
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import DRY_RUN, home_location, print_json, shared, this_home
from turnlog.errors import Invalid, Unsupported
from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of
from turnlog.machine.space import set_limit, size_of


def _bytes(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """A size, as `size_of` takes it."""
    try:
        return None if value is None else size_of(value)
    except Invalid as error:
        raise click.BadParameter(f"{error.message}: {error.hint}", context, parameter) from None


FIELDS = {
    "dry_run": DRY_RUN,
    "quota_bytes": "the quota, or null",
    "disk": "bytes of `logs`, `trash` and `blobs` now",
    "disk_before": "the same before",
    "blobs": "how many were removed",
    "freed_bytes": "how much that gave back",
    "dropped": "how many checkpoints were given up",
}


@click.command()
@click.option("--quota", callback=_bytes, metavar="SIZE", help="Give up automatic checkpoints until blobs fit in that.")
@click.option("--limit", callback=_bytes, metavar="SIZE", help="What hooks may fill it to from now on.")
@click.option("--dry-run", "-n", is_flag=True, help="Only say what it would do.")
@shared
def command(quota: int | None, limit: int | None, dry_run: bool, as_json: bool) -> None:
    """Give back disk space that no session needs.

    Logs are never touched. Blobs (contents of files, long texts) go when no session refers to them any more, for
    example after one was purged. With --quota, checkpoints that were taken automatically at the ends of turns are given
    up as well, the oldest first, until the rest fits; those that somebody asked for always stay. Safe while agents run.

    A home that hooks of agents fill has a limit of its own: 10 GB, or a tenth of the room on its disk if that is less.

    \b
    turnlog gc --dry-run                     what there is, and what could go
    turnlog gc --quota 2GB                   keep blobs below two gigabytes
    turnlog gc --limit 50GB                  let hooks keep more than the usual
    """
    if quota is not None and not dry_run:
        refuse_agent("`gc --quota`")
    if limit is not None and not dry_run:
        folder = folder_of(home_location() or default_home())
        if folder is None:
            raise Unsupported("a home in a database has no limit of its own", hint="set TURNLOG_LIMIT where agents run")
        set_limit(folder, str(limit))
    with this_home() as home:
        before = home.disk()
        done = home.gc(quota_bytes=quota, dry_run=dry_run)
        after = before if dry_run else home.disk()
    if as_json:
        data = {"dry_run": dry_run, "quota_bytes": quota, "disk": after, "disk_before": before}
        print_json({**data, "blobs": done.blobs, "freed_bytes": done.freed_bytes, "dropped": done.dropped})
        return
    for line in table(("WHAT", "SIZE"), [(name, size(number)) for name, number in after.items()], right=(1,)):
        print(line)
    print()
    would = "would be " if dry_run else ""
    about = "about " if dry_run else ""
    if done.dropped:
        print(f"{count(done.dropped, 'automatic checkpoint')} {would}given up")
    print(f"{count(done.blobs, 'blob')} {would}removed, {about}{size(max(0, done.freed_bytes))} {would}given back")
    if quota is not None and done.blob_bytes > quota:
        kept = "what is left is needed by logs and by checkpoints that somebody asked for"
        print(f"still over the quota by {size(done.blob_bytes - quota)}: {kept}")
