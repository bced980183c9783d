"""What follows from the contract, once for every store; where a store has a shorter way, that is taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Any, get_args

from turnlog.errors import Invalid, Unavailable, Unsupported
from turnlog.log.entry import AnyEntry, Entry
from turnlog.log.erasure.content import Erasure
from turnlog.log.ids import word
from turnlog.store import AddBlob, Blobs, Listed, Log, Logs, Place, Store
from turnlog.store import capability as can
from turnlog.store.capability import ability
from turnlog.store.listing import ListingCursor, behind, is_like


def ids(store: Logs, *, like: str = "", deleted: bool = False) -> Iterable[str]:
    """The ids of all sessions (or deleted ones) that begin like this, or whose handle does, in no order."""
    index = ability(store, can.IndexLogs)
    if index is not None:
        return index.ids(like=like, deleted=deleted)
    return [one.id for one in sessions(store, deleted=deleted) if is_like(one.id, like)]


def sessions(store: Logs, *, deleted: bool = False, ids: Collection[str] | None = None) -> Iterator[Listed]:
    """Every session (or every deleted one), or those of these `ids` that there are, in no order."""
    return store.listing("deleted" if deleted else "live", ids=ids)


def newest(store: Logs, *, deleted: bool = False, after: ListingCursor | None = None) -> Iterator[Listed]:
    """The same in their `order`, the newest first; lazy if the store has an index.

    `after` is the place to begin behind. One that grows meanwhile may be missed.
    """
    index = ability(store, can.IndexLogs)
    if index is not None:
        return index.newest(deleted=deleted, after=after)
    rows = sorted(sessions(store, deleted=deleted), key=lambda one: one.order, reverse=True)
    return behind(iter(rows), after)


def all_logs(store: Logs) -> Iterator[Log]:
    """Every log for reading: of sessions, of deleted ones, and what is kept aside for forks."""
    index = ability(store, can.IndexLogs)
    if index is not None:
        yield from index.all_logs()
        return
    for place in get_args(Place):
        for one in store.listing(place):
            yield store.open(one.id, read_only=True, first=one.first)


def holder_of(store: Logs, entry_id: str) -> str | None:
    """The session whose own log has the entry with that id; None if none has."""
    holding = ability(store, can.FindHolder)
    if holding is not None:
        return holding.holder_of(entry_id)
    for one in sessions(store):
        log = store.open(one.id, read_only=True, first=one.first)
        try:
            if find(log, entry_id) is not None:
                return one.id
        finally:
            log.close()
    return None


def put(store: Blobs, blobs: dict[str, bytes]) -> None:
    """Keep blobs under their digests, durable when this returns. Those that are there already cost nothing."""
    short = ability(store, can.PutBlobs)
    if short is not None:
        short.put(blobs)
    elif blobs:
        with store.keeping(), store.add() as add:
            for name, data in blobs.items():
                if add(data) != name:
                    raise Invalid(f"the content of blob {name} is not what its digest says")


def lacking(store: Blobs, digests: Iterable[str]) -> set[str]:
    """Those blobs of these that are not there."""
    index = ability(store, can.IndexBlobs)
    return index.lacking(digests) if index is not None else {name for name in digests if not store.has(name)}


def packs(store: Blobs, add: AddBlob | None = None) -> frozenset[str]:
    """Names of what holds the blobs. While all of them are still there, so is every blob that was.

    With `add`, inside `keeping`: of all that it knows of, which may save another look.
    """
    if isinstance(add, can.ListPacks):
        return add.packs()
    index = ability(store, can.IndexBlobs)
    return index.packs() if index is not None else frozenset({word(16)})  # not known: never the same again


def doubt(store: Blobs) -> str:
    """Why it is not certain which blobs there are; empty if it is."""
    unsure = ability(store, can.DoubtBlobs)
    return unsure.doubt() if unsure is not None else ""


def disk(store: Store) -> dict[str, int]:
    """How many bytes logs, deleted logs and blobs take; not of blobs, if the store does not say."""
    measured = ability(store, can.MeasureDisk)
    if measured is not None:
        return measured.disk()
    live, deleted, aside = (sum(one.size_bytes for one in store.listing(place)) for place in get_args(Place))
    return {"logs": live + aside, "trash": deleted}


def blob_bytes(store: Store) -> int:
    """How many bytes blobs take. Raises `Unsupported`."""
    return _measured(store).disk()["blobs"]


def is_scattered(store: Store) -> bool:
    """Whether blobs lie in so many places that it is time to write them together."""
    scattered = ability(store, can.ScatterBlobs)
    return scattered is not None and scattered.is_scattered()


def unneeded(store: Store, needed: Container[str]) -> dict[str, int]:
    """How many `blobs` and `bytes` a collection would remove, about."""
    return _measured(store).unneeded(needed)


def _measured(store: Store) -> can.MeasureDisk:
    measured = ability(store, can.MeasureDisk)
    if measured is None:
        raise Unsupported(
            f"the {store.backend} store does not say how much it takes",
            hint="do without a quota, and without a dry run",
        )
    return measured


def following(store: Logs) -> can.Following:
    """See `NotifyFollowers`; `asking` unless the store can notify."""
    followed = ability(store, can.NotifyFollowers)
    return "asking" if followed is None else followed.following


def load(store: Store, name: str) -> bytes:
    """Something that can be made again, as it was last kept; empty if it was not."""
    cache = ability(store, can.CacheData)
    return cache.load(name) if cache is not None else b""


def save(store: Store, name: str, data: bytes) -> None:
    """Keep something that can be made again. Losing it is no loss."""
    cache = ability(store, can.CacheData)
    if cache is not None:
        cache.save(name, data)


def health(store: Store) -> dict[str, Any]:
    """What a person or a monitor wants to know; `ok` says whether it works."""
    monitored = ability(store, can.ReportHealth)
    if monitored is not None:
        return monitored.health()
    return {
        "backend": store.backend,
        "location": f"{store.backend}:",
        "ok": True,
        "sessions": sum(1 for _ in ids(store)),
    }


def own_folders(store: Store) -> frozenset[tuple[int, int]]:
    """Device and inode of folders that belong to the store, so that they are not taken for work."""
    files = ability(store, can.KeepFiles)
    if files is None:
        return frozenset()
    try:
        status = os.stat(files.folder)
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise Unavailable(f"looking at {files.folder}: {error.strerror or error}") from error
    return frozenset({(status.st_dev, status.st_ino)})


def find(log: Log, entry_id: str) -> AnyEntry | None:
    """The entry with that id."""
    index = ability(log, can.FindEntry)
    if index is not None:
        return index.find(entry_id)
    return next((item for item in log.read(reverse=True) if isinstance(item, Entry) and item.id == entry_id), None)


def vouch(log: Log, ids: Iterable[str]) -> None:
    """See `VouchIds`."""
    trusting = ability(log, can.VouchIds)
    if trusting is not None:
        trusting.vouch(frozenset(ids))


def stamp(log: Log) -> object | None:
    """A value that changes whenever the log changes; None if only reading it would tell."""
    stamping = ability(log, can.StampLog)
    return None if stamping is None else stamping.stamp()


def version(log: Log) -> object:
    """See `VersionLog`; None where earlier lines never change."""
    versioned = ability(log, can.VersionLog)
    return None if versioned is None else versioned.version()


def erases(store: Logs) -> can.EraseEntries:
    """The store as one that can erase. Raises `Unsupported`."""
    eraser = ability(store, can.EraseEntries)
    if eraser is None:
        raise Unsupported("this store cannot erase single entries", hint="purge the session instead")
    return eraser


def erasures(store: Logs, first: str | None = None) -> dict[str, list[Erasure]]:
    """What was erased, by the first entries of logs; nothing, where nothing can be."""
    eraser = ability(store, can.EraseEntries)
    return {} if eraser is None else eraser.erasures(first)


def listen(log: Log, tell: Callable[[], None]) -> Callable[[], None] | None:
    """See `TellNews`; None if the store cannot notify."""
    telling = ability(log, can.TellNews)
    return None if telling is None else telling.listen(tell)
