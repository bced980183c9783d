"""Expired sessions: a session is removed together with its forks and subagents, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain

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
    now: datetime,
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
    limit = _earlier(now, older_than)

    def reason(placed: PlacedLog) -> str:
        return _reason(placed, now, limit, keep, only_deleted)

    going, left = _divided(_families(all_logs(store)), reason)
    if dry_run:
        removed = [Removed(one.row.id, "session", one.last_seq, one.row.size_bytes) for one in chain(*going)]
        return Purged(now, removed, left, 0, 0)
    removal = Removal(store, now)
    for family in reversed(going):
        left += _remove_unused(store, removal, family)
    return removal.receipt(left)


def _earlier(now: datetime, by: timedelta) -> datetime:
    try:
        return now - by
    except OverflowError:  # before the first year
        return datetime.min.replace(tzinfo=UTC)


def _divided(
    families: Iterable[list[PlacedLog]], reason: Callable[[PlacedLog], str]
) -> tuple[list[list[PlacedLog]], list[Remnant]]:
    """The families of which every session has expired, and the other expired sessions, with why they stay."""
    going: list[list[PlacedLog]] = []
    left: list[Remnant] = []
    for family in families:
        reasons = [(placed, reason(placed)) for placed in family]
        staying = next(((placed, why) for placed, why in reasons if why), None)
        if staying is None:
            going.append(family)
            continue
        other, its_reason = staying
        why = f"kept with {other.row.id}, its fork or subagent or what it came from, which {its_reason}"
        expired = [placed for placed, own_reason in reasons if not own_reason and placed.place != "aside"]
        left += [Remnant(placed.row.id, "session", why) for placed in expired]
    return going, left


def _remove_unused(store: Store, removal: Removal, family: list[PlacedLog]) -> list[Remnant]:
    """Remove a family, unless one of its sessions was used since it was listed: reading them may take long."""
    waiting: list[PlacedLog] = []
    for placed in family:
        with suppress(NotFound):  # another process removed it
            removal.note_blobs_of(placed)
            waiting.append(placed)
    used = next((placed for placed in waiting if _has_grown(store, placed)), None)
    while waiting and used is None:
        try:
            removal.remove(waiting[-1], "session", after=waiting[-1].last_seq)
        except NotFound:
            pass  # another process removed it
        except Conflict:
            used = waiting[-1]
            break
        waiting.pop()
    if used is None:
        return []
    why = f"{used.row.id} was used meanwhile"
    return [Remnant(placed.row.id, "session", why) for placed in waiting if placed.place != "aside"]


def _has_grown(store: Store, placed: PlacedLog) -> bool:
    if placed.place == "aside":
        return False
    try:
        with closing(store.open(placed.row.id, read_only=True, first=placed.row.first)) as log:
            return any(isinstance(item, Entry) for item in log.read(after=placed.last_seq))
    except NotFound:
        return False


def _reason(placed: PlacedLog, now: datetime, limit: datetime, keep: Keep, only_deleted: bool) -> str:
    """Why a session stays; empty if it has expired."""
    if placed.place == "aside":
        return ""
    if only_deleted and placed.place == "live":
        return "is not in the trash"
    if placed.row.start is None:
        return "cannot be read"
    if placed.row.id == MARKS or (keep(info_of(placed.row)) if callable(keep) else placed.row.id in keep):
        return "is kept"
    return "is newer" if _last_used(placed.row, now) > limit else ""


def _last_used(row: Listed, now: datetime) -> datetime:
    at = row.last.at if row.last is not None and row.last.at is not None else now
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
