"""Expired sessions: a session is removed together with its forks and subagents, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

from turnlog.errors import Conflict, Invalid, NotFound
from turnlog.log.entry import Entry
from turnlog.log.ids import MARKS
from turnlog.store import Listed, Store
from turnlog.thread.home.settings import check_stay
from turnlog.thread.removal.purging import (
    PlacedLog,
    Purged,
    Remnant,
    Removal,
    Removed,
    all_logs,
    logs_by_id,
    spawner_of,
)
from turnlog.thread.report import Info, info_of

Keep = Collection[str] | Callable[[Info], bool]
"""Sessions that stay: their ids, or a function that decides for each."""


def expire(
    store: Store,
    older_than: timedelta,
    *,
    now: datetime | None = None,
    keep: Keep = (),
    only_deleted: bool = False,
    dry_run: bool = False,
) -> Purged:
    """Remove for good the sessions without activity for that long; in the trash, those that were deleted before that.

    A session goes together with its forks and subagents, when the last of them has expired.
    """
    check_stay(older_than)
    if isinstance(keep, str):
        raise Invalid(f"the sessions to keep are a list of ids, not {keep!r:.80}", hint=f"[{keep!r:.40}]")
    moment = now or datetime.now(UTC)
    try:
        limit = moment - older_than
    except OverflowError:  # before the first year
        limit = datetime.min.replace(tzinfo=UTC)

    def is_kept(info: Info) -> bool:
        return keep(info) if callable(keep) else info.id in keep

    going: list[list[PlacedLog]] = []
    left: list[Remnant] = []
    for family in _families(all_logs(store)):
        reasons = {placed.key: _reason(placed, limit, is_kept, only_deleted) for placed in family}
        past = [placed for placed in family if not reasons[placed.key]]
        stays = next(((placed, why) for placed in family if (why := reasons[placed.key])), None)
        if stays is None:
            going.append(family)
            continue
        for placed in past:
            if placed.place != "aside":
                why = f"kept with {stays[0].row.id}, its fork or subagent or what it came from, which {stays[1]}"
                left.append(Remnant(placed.row.id, "session", why))
    if dry_run:
        removed = [
            Removed(placed.row.id, "session", placed.last_seq, placed.row.size_bytes)
            for family in going
            for placed in family
        ]
        return Purged(moment, removed, left, 0, 0)
    removal = Removal(store)
    for family in reversed(going):
        left += _remove_unused(store, removal, family)
    return removal.receipt(left)


def _remove_unused(store: Store, removal: Removal, family: list[PlacedLog]) -> list[Remnant]:
    """Remove a family, unless one of its sessions was used since it was listed: reading them may take long."""
    for placed in family:
        removal.note_blobs_of(placed)
    used = next((placed for placed in family if _has_grown(store, placed)), None)
    for index in range(len(family) if used is None else 0, 0, -1):
        placed = family[index - 1]
        try:
            removal.remove(placed, "session", after=placed.last_seq)
        except NotFound:
            continue  # another process removed it
        except Conflict:
            used, family = placed, family[:index]
            break
    if used is None:
        return []
    why = f"{used.row.id} was used meanwhile"
    return [Remnant(placed.row.id, "session", why) for placed in family if placed.place != "aside"]


def _has_grown(store: Store, placed: PlacedLog) -> bool:
    if placed.place == "aside":
        return False
    try:
        with closing(store.open(placed.row.id, read_only=True, first=placed.row.first)) as log:
            return any(isinstance(item, Entry) for item in log.read(after=placed.last_seq))
    except NotFound:
        return False


def _reason(placed: PlacedLog, limit: datetime, is_kept: Callable[[Info], bool], only_deleted: bool) -> str:
    """Why a session stays; empty if it has expired."""
    if placed.place == "aside":
        return ""
    if only_deleted and placed.place == "live":
        return "is not in the trash"
    if placed.row.start is None:
        return "cannot be read"
    if placed.row.id == MARKS or is_kept(info_of(placed.row)):
        return "is kept"
    return "is newer" if _last_used(placed.row) > limit else ""


def _last_used(row: Listed) -> datetime:
    at = row.last.at if row.last is not None and row.last.at is not None else datetime.now(UTC)
    return max(at, row.deleted_at) if row.deleted_at is not None else at


def _families(logs: list[PlacedLog]) -> Iterator[list[PlacedLog]]:
    """Sessions that were forked or spawned from each other, each after the one it builds on."""
    by_first = {placed.row.first: placed for placed in logs}
    by_id = logs_by_id(logs)
    above: dict[tuple[str, str], PlacedLog] = {}
    below: dict[tuple[str, str], list[PlacedLog]] = {}
    for placed in logs:
        start = placed.row.start
        parent = by_first.get(start.fork.base) if start and start.fork else None
        if parent is None:
            parent = spawner_of(by_id, start)
        if parent is not None and parent.key != placed.key:
            above[placed.key] = parent
            below.setdefault(parent.key, []).append(placed)
    seen: set[tuple[str, str]] = set()
    for placed in sorted(logs, key=lambda placed: placed.key in above):
        family: list[PlacedLog] = []
        waiting = [placed]
        for member in waiting:  # grows during the iteration
            if member.key not in seen:
                seen.add(member.key)
                family.append(member)
                waiting += below.get(member.key, [])
        if family:
            yield family
