"""`turnlog gc`."""

from __future__ import annotations

import sys
from datetime import timedelta

from turnlog.cli.draw.question import ask, refuse_without_terminal
from turnlog.cli.draw.receipt import LEFT, REMOVED, print_receipt, receipt_fields, show_sessions
from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, size
from turnlog.cli.frame import shape
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Option, declare
from turnlog.cli.frame.exitcode import Left, Misused
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.shape import DRY_RUN
from turnlog.errors import Unsupported
from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of
from turnlog.machine.retention import duration_of, set_trash_for
from turnlog.machine.space import set_limit, size_of
from turnlog.session import Home
from turnlog.thread.removal.purging import Purged

CHANGES = shape.LOG
FIELDS = {
    "dry_run": DRY_RUN,
    "quota_bytes": shape.number("the quota", null=True),
    "disk": shape.one("bytes now", {"logs": shape.number(), "trash": shape.number(), "blobs": shape.number()}),
    "disk_before": shape.one(
        "the same before", {"logs": shape.number(), "trash": shape.number(), "blobs": shape.number()}
    ),
    "blobs": shape.number("how many were removed"),
    "freed_bytes": shape.number("how many bytes that freed"),
    "dropped": shape.number("how many checkpoints were given up"),
    "removed": shape.each("with --older-than, the sessions that were removed", REMOVED),
    "left": shape.each("old ones that stayed", LEFT),
}


@declare(
    Option("--quota SIZE", "Give up automatic checkpoints until blobs fit into this size.", read=size_of),
    Option("--limit SIZE", "The size up to which hooks may fill it from now on.", read=size_of),
    Option("--older-than TIME", "Remove older sessions for good.", read=duration_of),
    Option("--keep SESSION", "With --older-than: keep this session.", many=True),
    Option("--trash TIME", "How long deleted sessions stay in the trash from now on, or `never`."),
    Option("--yes -y", "With --older-than: do not ask."),
    Option("--dry-run -n", "Only show what it would do."),
)
def command(
    quota: int | None,
    limit: int | None,
    older_than: timedelta | None,
    keep: tuple[str, ...],
    trash: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Free disk space that no session needs.

    Logs are not touched, unless --older-than is given. Blobs (contents of files, long texts) are removed when no
    session refers to them any more. With --quota, automatic checkpoints are given up as well, the oldest first, until
    the rest fits; checkpoints made by hand always stay. It is safe while agents run.

    With --older-than, sessions without activity for that long (90d, 12w, 36h, 2y) are removed for good, and so are
    sessions that were deleted before that. The command shows them, and asks. Forks and subagents stay or go together
    with their original.

    A home that hooks fill has a limit of its own: 10 GB, or a tenth of the free disk space if that is less.

    \b
    turnlog gc --dry-run                   what there is, and what could go
    turnlog gc --quota 2GB                 keep blobs below two gigabytes
    turnlog gc --limit 50GB                let hooks keep more than the usual
    turnlog gc --older-than 90d --dry-run  which sessions are older than that
    turnlog gc --trash 30d                 empty the trash after 30 days
    """
    if keep and older_than is None:
        raise Misused("--keep goes with --older-than")
    if quota is not None and not dry_run:
        refuse_agent("`gc --quota`")
    if limit is not None and not dry_run:
        folder = folder_of(home_location() or default_home())
        if folder is None:
            raise Unsupported("a home in a database has no limit of its own", hint="set TURNLOG_LIMIT where agents run")
        set_limit(folder, str(limit))
    if (older_than is not None or trash is not None) and not dry_run:
        refuse_agent("`gc --older-than`" if trash is None else "`gc --trash`")
    if trash is not None and not dry_run:
        folder = folder_of(home_location() or default_home())
        if folder is None:
            raise Unsupported(
                "the trash of a database does not empty itself", hint="run `turnlog gc --older-than` now and then"
            )
        set_trash_for(folder, trash)
    with this_home() as home:
        before = home.disk()
        expired = _expired(home, older_than, keep, yes, dry_run, as_json) if older_than is not None else []
        collected = home.gc(quota_bytes=quota, dry_run=dry_run)
        after = before if dry_run else home.disk()
    if as_json:
        data = {"dry_run": dry_run, "quota_bytes": quota, "disk": after, "disk_before": before}
        document = {"blobs": collected.blobs, "freed_bytes": collected.freed_bytes, "dropped": collected.dropped}
        fields = receipt_fields(expired)
        print_json({**data, **document, "removed": fields["removed"], "left": fields["left"]})
        return
    if expired:
        many = len(expired[0].removed)
        print(f"{count(many, 'session')} {'would be' if dry_run else 'is' if many == 1 else 'are'} gone for good")
        print_receipt(expired)
        print()
    for line in table(("WHAT", "SIZE"), [(name, size(number)) for name, number in after.items()], right=(1,)):
        print(line)
    print()
    would = "would be " if dry_run else ""
    about = "about " if dry_run else ""
    if collected.dropped:
        print(f"{count(collected.dropped, 'automatic checkpoint')} {would}given up")
    freed = size(max(0, collected.freed_bytes))
    print(f"{count(collected.blobs, 'blob')} {would}removed, {about}{freed} {would}given back")
    if quota is not None and collected.blob_bytes > quota:
        kept = "the rest is needed by logs and by checkpoints made by hand"
        print(f"still over the quota by {size(collected.blob_bytes - quota)}: {kept}")


def _expired(
    home: Home,
    older_than: timedelta,
    keep: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> list[Purged]:
    """What goes, shown and asked for first."""
    kept = {home.find(name) for name in keep}
    plan = home.expire(older_than, keep=kept, dry_run=True)
    if dry_run or not plan.removed:
        return [plan]
    if not yes:
        refuse_without_terminal("gc --older-than asks first", as_json=as_json)
        rows = {row.id: row for is_it in (True, False) for row in home.sessions(deleted=is_it)}
        show_sessions([rows[one.id] for one in plan.removed if one.id in rows])
        if not ask(f"remove {count(len(plan.removed), 'session')} for good?"):
            print("nothing was removed", file=sys.stderr)
            raise Left(1)
    purged = home.expire(older_than, keep=kept)
    from turnlog.cli.pick.catalog import forget_purged

    forget_purged(home_location())
    return [purged]
