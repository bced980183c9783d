"""Which sessions are past their time: together with what was made of them, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

from turnlog.errors import Conflict, Invalid, NotFound
from turnlog.log.entry import Entry
from turnlog.log.ids import MARKS
from turnlog.store import Listed, Store
from turnlog.thread.removal.purging import PlacedLog, Purged, Remnant, Removal, Removed, everything
from turnlog.thread.report import Info, info_of

Keep = Collection[str] | Callable[[Info], bool]
"""Sessions that stay, by their ids; or what says of each whether it does."""


def expire(
    store: Store,
    older_than: timedelta,
    *,
    now: datetime | None = None,
    keep: Keep = (),
    only_deleted: bool = False,
    dry_run: bool = False,
) -> Purged:
    """Remove for good what nothing happened in for that long; of what is in the trash, what was deleted before that.

    Sessions that were made of each other (forks, subagents) go together, when the last of them is past its time.
    """
    if not isinstance(older_than, timedelta) or older_than < timedelta(0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(
            f"{older_than!r:.80} is not how long sessions stay", hint="a timedelta, such as timedelta(days=90)"
        )
    moment = now or datetime.now(UTC)
    limit = moment - older_than

    def is_kept(info: Info) -> bool:
        return keep(info) if callable(keep) else info.id in keep

    going: list[list[PlacedLog]] = []
    left: list[Remnant] = []
    for family in _families(everything(store)):
        reasons = {one.which: _reason(one, limit, is_kept, only_deleted) for one in family}
        past = [one for one in family if not reasons[one.which]]
        stays = next(((one, why) for one in family if (why := reasons[one.which])), None)
        if stays is None:
            going.append(family)
            continue
        for one in past:
            if one.place != "aside":
                why = f"kept with {stays[0].row.id}, its fork or subagent or what it came from, which {stays[1]}"
                left.append(Remnant(one.row.id, "session", why))
    if dry_run:
        removed = [
            Removed(one.row.id, "session", one.last_seq, one.row.size_bytes) for family in going for one in family
        ]
        return Purged(moment, removed, left, 0, 0)
    removal = Removal(store)
    for family in reversed(going):
        left += _remove_unused(store, removal, family)
    return removal.receipt(left)


def _remove_unused(store: Store, removal: Removal, family: list[PlacedLog]) -> list[Remnant]:
    """Remove a family, unless one of them was used since it was listed: to read them all may have taken long."""
    for one in family:
        removal.look(one)
    used = next((one for one in family if _has_grown(store, one)), None)
    for index in range(len(family) if used is None else 0, 0, -1):
        one = family[index - 1]
        try:
            removal.take(one, "session", after=one.last_seq)
        except NotFound:
            continue  # somebody else removed it
        except Conflict:
            used, family = one, family[:index]
            break
    if used is None:
        return []
    why = f"{used.row.id} was used meanwhile"
    return [Remnant(one.row.id, "session", why) for one in family if one.place != "aside"]


def _has_grown(store: Store, one: PlacedLog) -> bool:
    if one.place == "aside":
        return False
    try:
        with closing(store.open(one.row.id, read_only=True, first=one.row.first)) as log:
            return any(isinstance(item, Entry) for item in log.read(after=one.last_seq))
    except NotFound:
        return False


def _reason(one: PlacedLog, limit: datetime, is_kept: Callable[[Info], bool], only_deleted: bool) -> str:
    """Why a session stays; empty if it need not."""
    if one.place == "aside":
        return ""
    if only_deleted and one.place == "live":
        return "is not in the trash"
    if one.row.start is None:
        return "cannot be read"
    if one.row.id == MARKS or is_kept(info_of(one.row)):
        return "is kept"
    return "is newer" if _last_used(one.row) > limit else ""


def _last_used(row: Listed) -> datetime:
    at = row.last.at if row.last is not None and row.last.at is not None else datetime.now(UTC)
    return max(at, row.deleted_at) if row.deleted_at is not None else at


def _families(logs: list[PlacedLog]) -> Iterator[list[PlacedLog]]:
    """Those that were made of each other; whatever builds on another comes behind it."""
    by_first = {one.row.first: one for one in logs}
    by_id = {one.row.id: one for one in logs}
    above: dict[tuple[str, str], PlacedLog] = {}
    below: dict[tuple[str, str], list[PlacedLog]] = {}
    for one in logs:
        start = one.row.start
        parent = by_first.get(start.fork.base) if start and start.fork else None
        if parent is None and start and start.spawned:
            parent = by_id.get(start.spawned.session)
        if parent is not None and parent.which != one.which:
            above[one.which] = parent
            below.setdefault(parent.which, []).append(one)
    seen: set[tuple[str, str]] = set()
    for one in sorted(logs, key=lambda one: one.which in above):
        family: list[PlacedLog] = []
        waiting = [one]
        for member in waiting:  # grows while it is gone through
            if member.which not in seen:
                seen.add(member.which)
                family.append(member)
                waiting += below.get(member.which, [])
        if family:
            yield family
