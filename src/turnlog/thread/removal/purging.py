"""Removing sessions for good, with what was made of them if asked; and saying what went and what stayed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple, get_args

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound
from turnlog.store import Freed, Listed, Place, Store
from turnlog.store.refusal import refuse_longer
from turnlog.thread.garbage import forget_unneeded, refers_to


class Removed(Struct, frozen=True):
    """A session that is gone for good."""

    id: str
    kind: str
    """`session`: the one that was named; `fork` or `subagent`: one that went with it."""
    entries: int
    """The number of its last entry."""
    size_bytes: int


class Remnant(Struct, frozen=True):
    """Something that stays, and why."""

    id: str
    kind: str
    """`fork`, `subagent` or `blobs`."""
    why: str


class Purged(Struct, frozen=True):
    """The receipt of a purge."""

    at: datetime
    removed: list[Removed]
    left: list[Remnant]
    blobs: int
    """How many contents of files and long texts went with them."""
    freed_bytes: int


class PlacedLog(NamedTuple):
    """A log, and where it is."""

    place: Place
    row: Listed

    @property
    def which(self) -> tuple[str, str]:
        """What tells it from others that are or were called the same."""
        return self.row.id, self.row.first

    @property
    def last_seq(self) -> int:
        """The number of its last entry."""
        return 0 if self.row.last is None else self.row.last.seq


def everything(store: Store) -> list[PlacedLog]:
    """Every log there is."""
    return [PlacedLog(place, row) for place in get_args(Place) for row in store.listing(place)]


def forks_of(logs: Iterable[PlacedLog], first: str) -> list[PlacedLog]:
    """Those that continue the session with that first entry."""
    return [one for one in logs if one.row.start and one.row.start.fork and one.row.start.fork.base == first]


def subagents_of(logs: Iterable[PlacedLog], session: str) -> list[PlacedLog]:
    """Those that the session with that id started."""
    return [one for one in logs if one.row.start and one.row.start.spawned and one.row.start.spawned.session == session]


def purge(
    store: Store,
    session: str,
    *,
    deleted: bool | None = None,
    subagents: bool = False,
    forks: bool = False,
    after: int | None = None,
) -> Purged:
    """Remove a session for good; its subagents and forks as well, and theirs, if told. The session itself goes last.

    `after` is the last entry that the caller has seen of it.
    """
    logs = everything(store)
    places: tuple[Place, ...] = ("live", "deleted") if deleted is None else ("deleted",) if deleted else ("live",)
    named = [one for one in logs if one.row.id == session and one.place in places]
    if len(named) != 1:
        store.purge(session, deleted=deleted, after=after)  # which says why not, or knows it under another name
        return Purged(datetime.now(UTC), [Removed(session, "session", 0, 0)], [], 0, 0)
    refuse_longer(session, named[0].last_seq, after)
    going = {named[0].which: (named[0], "session")}
    left: dict[tuple[str, str], Remnant] = {}
    for one, _ in (waiting := [going[named[0].which]]):  # grows while it is gone through
        for kind, is_wanted, found in (
            ("fork", forks, forks_of(logs, one.row.first)),
            ("subagent", subagents, subagents_of(logs, one.row.id)),
        ):
            for other in found:
                if other.which in going:
                    continue
                if is_wanted:
                    going[other.which] = (other, kind)
                    waiting.append(going[other.which])
                elif other.place != "aside":
                    left[other.which] = Remnant(other.row.id, kind, _why(kind, other.row))
    stays = [one for which, one in left.items() if which not in going]
    return remove(store, list(going.values()), stays, after=after)


def _why(kind: str, row: Listed) -> str:
    if kind == "subagent" or row.start is None or row.start.fork is None:
        return "it is a session of its own"
    return f"it builds on entries up to {row.start.fork.seq}, which stay for it"


def remove(
    store: Store, going: list[tuple[PlacedLog, str]], left: list[Remnant], *, after: int | None = None
) -> Purged:
    """Those that build on others first, so that an interrupted purge can be repeated."""
    removal = Removal(store)
    for one, kind in reversed(going):
        removal.look(one)
        removal.take(one, kind, after=after if kind == "session" else None)
    return removal.receipt(left)


class Removal:
    """Sessions that go one after the other, and then what nobody else needs of their blobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._blobs: set[str] = set()
        self._removed: list[Removed] = []
        self._doubt: list[str] = []

    def look(self, one: PlacedLog) -> None:
        """Which blobs may go with it. Reads all of it."""
        try:
            self._blobs |= refers_to(self._store, one.row.id, one.row.first)
        except Corrupt as error:
            self._doubt.append(error.message)

    def take(self, one: PlacedLog, kind: str, *, after: int | None) -> None:
        """Remove it. What is only kept for others goes with the last of them."""
        if one.place != "aside":
            self._store.purge(one.row.id, deleted=one.place == "deleted", after=after)
        self._removed.append(Removed(one.row.id, kind, one.last_seq, one.row.size_bytes))

    def receipt(self, left: list[Remnant]) -> Purged:
        """What went, and what stayed; the last that was taken comes first."""
        freed = Freed()
        try:
            freed = forget_unneeded(self._store, self._blobs) if self._blobs else freed
        except (Corrupt, NotFound) as error:
            self._doubt.append(error.message)
        left = left + [Remnant(why, "blobs", why) for why in self._doubt]
        return Purged(datetime.now(UTC), self._removed[::-1], left, freed.blobs, freed.size_bytes)
