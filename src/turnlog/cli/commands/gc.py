"""`turnlog gc`."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from turnlog.cli.draw.receipt import print_receipt, show_sessions
from turnlog.cli.draw.table import table
from turnlog.cli.fields.receipt import LEFT, REMOVED, json_receipt
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import DRY_RUN_OPTION, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.question import confirm, refuse_without_terminal
from turnlog.cli.pick.session import names
from turnlog.errors import Unsupported
from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of
from turnlog.machine.retention import duration_of, set_trash_for, trash_time
from turnlog.machine.space import set_limit, size_of
from turnlog.session import Home
from turnlog.thread.removal.purging import Purged
from turnlog.thread.space.garbage import Collected
from turnlog.view.number import count, size

GROUP = "Care", 16
CHANGES = shape.LOG
FIELDS = {
    "dry_run": DRY_RUN,
    "quota_bytes": shape.number("the quota", null=True),
    "disk": shape.one("bytes now", {"logs": shape.number(), "trash": shape.number(), "[blobs]": shape.number()}),
    "disk_before": shape.one(
        "the same before", {"logs": shape.number(), "trash": shape.number(), "[blobs]": shape.number()}
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
    Option("--keep SESSION", "With --older-than: keep this session.", repeatable=True, kind="session"),
    Option("--trash TIME", "How long deleted sessions stay in the trash from now on, or `never`.", read=trash_time),
    Option("--yes -y", "With --older-than: do not ask."),
    DRY_RUN_OPTION,
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
        raise UsageError("--keep goes with --older-than")
    if not dry_run:
        given = {"--quota": quota, "--older-than": older_than, "--trash": trash, "--limit": limit}
        for option in (name for name, value in given.items() if value is not None):
            refuse_agent(f"gc {option}")
    folder = _folder(limit, trash) if (limit is not None or trash is not None) and not dry_run else None
    expiry = None if older_than is None else _expiry(older_than, keep, yes=yes, dry_run=dry_run, as_json=as_json)
    if folder is not None:
        _set(folder, limit, trash)
    with this_home() as home:
        before = home.disk()
        expired = [] if expiry is None else [_expire(home, expiry)]
        collected = home.gc(quota_bytes=quota, dry_run=dry_run)
        after = before if dry_run else home.disk()
    if as_json:
        data = {"dry_run": dry_run, "quota_bytes": quota, "disk": after, "disk_before": before}
        document = {"blobs": collected.blobs, "freed_bytes": collected.freed_bytes, "dropped": collected.dropped}
        fields = json_receipt(expired)
        print_json({**data, **document, "removed": fields["removed"], "left": fields["left"]})
    else:
        _print_settings(limit, trash, dry_run=dry_run)
        _print_expired(expired, dry_run=dry_run)
        for line in table(("WHAT", "SIZE"), [(name, size(number)) for name, number in after.items()], right=(1,)):
            print(line)
        print()
        _print_collected(collected, quota, dry_run=dry_run)
    if not dry_run and any(purged.removed for purged in expired):
        from turnlog.cli.pick.catalog import forget_purged

        forget_purged(home_location())  # may fail, so it follows the receipt


class _Expiry(NamedTuple):
    """The sessions that are too old."""

    older_than: timedelta
    kept: set[str]
    """Those that stay however old they are."""
    confirmed: set[str] | None
    """Those that are to be removed, because the user agreed to them; None if they are only named."""


def _expiry(older_than: timedelta, keep: tuple[str, ...], *, yes: bool, dry_run: bool, as_json: bool) -> _Expiry:
    with this_home() as home:
        own_id = names(home).own_id
        kept = {own_id(name) for name in keep}
        if dry_run:
            return _Expiry(older_than, kept, None)
        plan = home.expire(older_than, keep=kept, dry_run=True)
        _ask(home, plan, yes=yes, as_json=as_json)
        return _Expiry(older_than, kept, {row.id for row in plan.removed})


def _expire(home: Home, expiry: _Expiry) -> Purged:
    kept, confirmed = expiry.kept, expiry.confirmed
    if confirmed is None:
        return home.expire(expiry.older_than, keep=kept, dry_run=True)
    # What became too old while the question stood, nobody has agreed to.
    return home.expire(expiry.older_than, keep=lambda info: info.id in kept or info.id not in confirmed)


def _print_expired(expired: list[Purged], *, dry_run: bool) -> None:
    if expired:
        many = len(expired[0].removed)
        print(f"{count(many, 'session')} {'would be' if dry_run else 'was' if many == 1 else 'were'} removed for good")
        print_receipt(expired)
        print()


def _print_collected(collected: Collected, quota: int | None, *, dry_run: bool) -> None:
    would, about = ("would be ", "about ") if dry_run else ("", "")
    if collected.dropped:
        print(f"{count(collected.dropped, 'automatic checkpoint')} {would}given up")
    freed = size(max(0, collected.freed_bytes))
    print(f"{count(collected.blobs, 'blob')} {would}removed, {about}{freed} {would}freed")
    if quota is not None and collected.blob_bytes > quota:
        why = "the rest is needed by logs and by checkpoints made by hand"
        print(f"still over the quota by {size(collected.blob_bytes - quota)}: {why}")


def _folder(limit: int | None, trash: str | None) -> str:
    """The folder of the home, where its settings are. Raises `Unsupported` for a home in a database."""
    folder = folder_of(home_location() or default_home())
    if folder is not None:
        return folder
    if limit is not None:
        raise Unsupported("a home in a database has no limit of its own", hint="set TURNLOG_LIMIT where agents run")
    raise Unsupported(
        f"the trash of a database does not empty itself: --trash {trash}",
        hint="run `turnlog gc --older-than` now and then",
    )


def _set(folder: str, limit: int | None, trash: str | None) -> None:
    """Store the limit and the time in the trash that hold from now on."""
    if limit is not None:
        set_limit(folder, str(limit))
    if trash is not None:
        set_trash_for(folder, trash)


def _print_settings(limit: int | None, trash: str | None, *, dry_run: bool) -> None:
    will = "would" if dry_run else "will"
    if limit is not None:
        print(f"hooks {will} fill this home up to {size(limit)}")
    if trash is not None:
        days = " days" if trash.isdecimal() else ""
        how_long = "until they are removed" if trash == "never" else f"for {trash}{days}"
        print(f"deleted sessions {will} stay in the trash {how_long}")


def _ask(home: Home, plan: Purged, *, yes: bool, as_json: bool) -> None:
    """Ask whether the sessions of the plan, if any, are to be removed. Raises `Exit` for a no."""
    if plan.removed and not yes:
        refuse_without_terminal("gc --older-than asks first", as_json=as_json)
        rows = {row.id: row for deleted in (True, False) for row in home.sessions(deleted=deleted)}
        show_sessions([rows[removed.id] for removed in plan.removed if removed.id in rows])
        confirm(f"remove {count(len(plan.removed), 'session')} for good?", nothing="nothing was removed")
