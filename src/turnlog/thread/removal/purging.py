"""Removing sessions for good, with their forks and subagents if requested; and the receipt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple, get_args

from msgspec import Struct

from turnlog.errors import Ambiguous, Corrupt, NotFound
from turnlog.log.entry import Start
from turnlog.store import Freed, Listed, Place, Store
from turnlog.store.refusal import refuse_other_end
from turnlog.thread.space.garbage import forget_unneeded, refers_to


class Removed(Struct, frozen=True):
    """A session that is gone for good."""

    id: str
    kind: str
    """`session`: the one that was named; `fork` or `subagent`: removed with it."""
    entries: int
    """The `seq` of its last entry."""
    size_bytes: int


class Remnant(Struct, frozen=True):
    """Something that stays, and why."""

    id: str
    """The id of the session; empty for `blobs`."""
    kind: str
    """`session`, `fork` or `subagent`; or `blobs`, if it is not known whether anything needs them."""
    why: str


class Purged(Struct, frozen=True):
    """The receipt of a purge."""

    at: datetime
    removed: list[Removed]
    left: list[Remnant]
    blobs: int
    """How many blobs were removed: contents of files, and long texts."""
    freed_bytes: int


class PlacedLog(NamedTuple):
    """A log, and in which place of the store it is."""

    place: Place
    row: Listed

    @property
    def key(self) -> tuple[str, str]:
        """The id of the session and of its first entry, because ids of sessions can be used again."""
        return self.row.id, self.row.first

    @property
    def last_seq(self) -> int:
        """The `seq` of its last entry."""
        return 0 if self.row.last is None else self.row.last.seq


class Going(NamedTuple):
    """A log that is to be removed."""

    placed: PlacedLog
    kind: str
    """See `Removed.kind`."""


def all_logs(store: Store) -> list[PlacedLog]:
    """Every log in the store."""
    return [PlacedLog(place, row) for place in get_args(Place) for row in store.listing(place)]


def forks_of(logs: Iterable[PlacedLog], first: str) -> list[PlacedLog]:
    """The sessions that were forked from the session with that first entry."""
    return [
        placed for placed in logs if placed.row.start and placed.row.start.fork and placed.row.start.fork.base == first
    ]


def logs_by_id(logs: Iterable[PlacedLog]) -> dict[str, list[PlacedLog]]:
    """The logs by the id of their session, of which there may be several: live before deleted before kept for forks."""
    places = get_args(Place)
    by_id: dict[str, list[PlacedLog]] = {}
    for placed in sorted(logs, key=lambda placed: places.index(placed.place)):
        by_id.setdefault(placed.row.id, []).append(placed)
    return by_id


def spawner_of(by_id: Mapping[str, Sequence[PlacedLog]], start: Start | None) -> PlacedLog | None:
    """The session that started a subagent; None if it is gone, or this is no subagent.

    A subagent only names an id, which may be used again: what began after the subagent did not start it.
    """
    if start is None or start.spawned is None:
        return None
    return next((placed for placed in by_id.get(start.spawned.session, ()) if not _began_after(placed, start)), None)


def _began_after(placed: PlacedLog, start: Start) -> bool:
    if start.origin is not None or placed.row.start is None or placed.row.start.at is None or start.at is None:
        return False  # imported sessions are written in any order
    return placed.row.start.at > start.at


def subagents_of(logs: Iterable[PlacedLog], by_id: Mapping[str, Sequence[PlacedLog]], of: PlacedLog) -> list[PlacedLog]:
    """The subagents of a session."""
    return [
        placed
        for placed in logs
        if (spawner := spawner_of(by_id, placed.row.start)) is not None and spawner.key == of.key
    ]


def purge(
    store: Store,
    session: str,
    *,
    now: datetime,
    deleted: bool | None = None,
    subagents: bool = False,
    forks: bool = False,
    after: int | None = None,
) -> Purged:
    """Remove a session for good, and all its subagents and forks if requested. The session itself goes last.

    `now` is the time for the receipt, `after` the `seq` of the last entry that the caller has seen.
    """
    logs = all_logs(store)
    places: tuple[Place, ...] = ("live", "deleted") if deleted is None else ("deleted",) if deleted else ("live",)
    named = [placed for placed in logs if placed.row.id == session and placed.place in places]
    if len(named) != 1:
        store.purge(session, deleted=deleted, after=after)  # raises, or finds the session under another name
        return Purged(now, [Removed(session, "session", 0, 0)], [], 0, 0)
    refuse_other_end(session, named[0].last_seq, after)
    by_id = logs_by_id(logs)
    going = {named[0].key: Going(named[0], "session")}
    left: dict[tuple[str, str], Remnant] = {}
    waiting = [named[0]]
    for placed in waiting:  # grows during the iteration
        for kind, is_wanted, followers in (
            ("fork", forks, forks_of(logs, placed.row.first)),
            ("subagent", subagents, subagents_of(logs, by_id, placed)),
        ):
            if kind == "subagent" and is_wanted and followers:
                _refuse_doubt(by_id[placed.row.id])
            for follower in followers:
                if follower.key in going:
                    continue
                if is_wanted:
                    going[follower.key] = Going(follower, kind)
                    waiting.append(follower)
                elif follower.place != "aside":
                    left[follower.key] = Remnant(follower.row.id, kind, _why(kind, follower.row))
    stays = [placed for key, placed in left.items() if key not in going]
    removal = Removal(store, now)
    # Those that build on others go first, so that an interrupted purge can be repeated.
    for follower in reversed(list(going.values())[1:]):
        with suppress(NotFound):  # another process removes it at the same time
            removal.note_blobs_of(follower.placed)
            removal.remove(follower.placed, follower.kind)
    removal.note_blobs_of(named[0])
    removal.remove(named[0], "session", after=after)
    return removal.receipt(stays)


def _refuse_doubt(candidates: list[PlacedLog]) -> None:
    """Raise `Ambiguous` if another session could have started the subagents: clocks may have been wrong."""
    if len({placed.key for placed in candidates if placed.place != "aside"}) > 1:
        raise Ambiguous(
            f"there are two sessions {candidates[0].row.id!r}, and either may have started the subagents of that name",
            hint="purge the session without its subagents, and then those by their own ids",
        )


def _why(kind: str, row: Listed) -> str:
    if kind == "subagent" or row.start is None or row.start.fork is None:
        return "it is a session of its own"
    return f"it builds on entries up to {row.start.fork.seq}, which stay for it"


class Removal:
    """A removal of several sessions, one by one, and then of the blobs that nothing else needs."""

    def __init__(self, store: Store, now: datetime) -> None:
        self._store = store
        self._now = now
        self._blobs: set[str] = set()
        self._removed: list[Removed] = []
        self._doubt: list[str] = []

    def note_blobs_of(self, placed: PlacedLog) -> None:
        """Collect the blobs that may go with a session; reads its whole log. `NotFound` if the session is gone."""
        try:
            self._blobs |= refers_to(self._store, placed.row.id, placed.row.first)
        except NotFound:
            raise NotFound(f"session {placed.row.id!r:.80} was removed by another process") from None
        except Corrupt as error:
            self._doubt.append(error.message)

    def remove(self, placed: PlacedLog, kind: str, *, after: int | None = None) -> None:
        """Remove a session; `NotFound` if it is gone. A log that is only kept for others goes with the last of them."""
        if placed.place != "aside":
            self._store.purge(placed.row.id, deleted=placed.place == "deleted", after=after)
        self._removed.append(Removed(placed.row.id, kind, placed.last_seq, placed.row.size_bytes))

    def receipt(self, left: list[Remnant]) -> Purged:
        """Remove the blobs and return the receipt: what was removed, in reverse order, and what stayed."""
        freed = Freed()
        try:
            freed = forget_unneeded(self._store, self._blobs) if self._blobs else freed
        except (Corrupt, NotFound) as error:
            self._doubt.append(error.message)
        left = left + [Remnant("", "blobs", why) for why in self._doubt]
        return Purged(self._now, self._removed[::-1], left, freed.blobs, freed.size_bytes)
