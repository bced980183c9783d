"""`turnlog gc`."""

from __future__ import annotations

import re

import click

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, size
from turnlog.cli.frame.command import DRY_RUN, print_json, shared, this_home

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def _bytes(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """`500MB`, `2 GB`, `1.5G`, or a number of bytes."""
    if value is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)b?\s*", value.lower())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a size: 500MB, 2GB, or a number of bytes", context, parameter)
    return int(float(match[1]) * _UNITS[match[2]])


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
@click.option("--dry-run", "-n", is_flag=True, help="Only say what it would do.")
@shared
def command(quota: int | None, dry_run: bool, as_json: bool) -> None:
    """Give back disk space that no session needs.

    Logs are never touched. Blobs (contents of files, long texts) go when no session refers to them any more, for
    example after one was purged. With --quota, checkpoints that were taken automatically at the ends of turns are given
    up as well, the oldest first, until the rest fits; those that somebody asked for always stay. Safe while agents run.

    \b
    turnlog gc --dry-run                     what there is, and what could go
    turnlog gc --quota 2GB                   keep blobs below two gigabytes
    """
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
