"""Functions that work with every store through the contract, or through a faster capability of the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Any, get_args

from turnlog.errors import Invalid, Unavailable, Unsupported
from turnlog.log.entry import AnyEntry, Entry
from turnlog.log.erasure.content import Erasure
from turnlog.log.ids import word
from turnlog.store import AddBlob, Blobs, Freed, Listed, Log, Logs, Place, Store
from turnlog.store import capability as can
from turnlog.store.capability import ability
from turnlog.store.listing import ListingCursor, is_like, rest_after


def ids(store: Logs, *, like: str = "", deleted: bool = False) -> Iterable[str]:
    """Return the ids of all sessions (or deleted ones) whose id or handle begins with `like`, in no order."""
    index = ability(store, can.IndexLogs)
    if index is not None:
        return index.ids(like=like, deleted=deleted)
    return [one.id for one in sessions(store, deleted=deleted) if is_like(one.id, like)]


def sessions(store: Logs, *, deleted: bool = False, ids: Collection[str] | None = None) -> Iterator[Listed]:
    """Yield every session (or every deleted one), or those with these `ids` that exist, in no order."""
    return store.listing("deleted" if deleted else "live", ids=ids)


def exists(store: Logs, session_id: str, *, deleted: bool = False) -> bool:
    """Whether there is a session (or a deleted one) with exactly this id. Takes no lock and opens no log."""
    try:
        return any(row.id == session_id for row in sessions(store, deleted=deleted, ids=[session_id]))
    except Invalid:  # no session can have this id
        return False


def newest(store: Logs, *, deleted: bool = False, after: ListingCursor | None = None) -> Iterator[Listed]:
    """Yield every session (or every deleted one), newest first; lazy if the store has an index.

    The listing begins after the cursor `after`. A session that grows meanwhile may be missed.
    """
    index = ability(store, can.IndexLogs)
    if index is not None:
        return index.newest(deleted=deleted, after=after)
    rows = sorted(sessions(store, deleted=deleted), key=lambda one: one.order, reverse=True)
    return rest_after(iter(rows), after)


def all_logs(store: Logs) -> Iterator[Log]:
    """Yield every log, opened for reading: sessions, deleted sessions, and logs kept aside for forks."""
    index = ability(store, can.IndexLogs)
    if index is not None:
        yield from index.all_logs()
        return
    for place in get_args(Place):
        for one in store.listing(place):
            yield store.open(one.id, read_only=True, first=one.first)


def holder_of(store: Logs, entry_id: str) -> str | None:
    """Return the id of the session whose own log has the entry with that id, or None."""
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
    """Add blobs under their digests; durable when this returns. Blobs that are already stored take no space."""
    short = ability(store, can.PutBlobs)
    if short is not None:
        short.put(blobs)
    elif blobs:
        with store.keeping(), store.add() as add:
            for name, data in blobs.items():
                if add(data) != name:
                    raise Invalid(f"the content of blob {name} is not what its digest says")


def lacking(store: Blobs, digests: Iterable[str]) -> set[str]:
    """Return the digests of the blobs that are not stored."""
    index = ability(store, can.IndexBlobs)
    return index.lacking(digests) if index is not None else {name for name in digests if not store.has(name)}


def packs(store: Blobs, add: AddBlob | None = None) -> frozenset[str]:
    """Return the names of the packs that hold the blobs. While all of these packs exist, so do all blobs in them.

    With `add`, inside `keeping`: the packs that the batch knows of, which may save listing them again.
    """
    if isinstance(add, can.ListPacks):
        return add.packs()
    index = ability(store, can.IndexBlobs)
    return index.packs() if index is not None else frozenset({word(16)})  # unknown: a name that never occurs again


def doubt(store: Blobs) -> str:
    """Why it is not certain which blobs there are; empty if it is."""
    unsure = ability(store, can.DoubtBlobs)
    return unsure.doubt() if unsure is not None else ""


def disk(store: Store) -> dict[str, int]:
    """Return the sizes of logs, deleted logs and blobs in bytes; without blobs if the store cannot measure them."""
    measured = ability(store, can.MeasureDisk)
    if measured is not None:
        return measured.disk()
    sizes = {place: sum(row.size_bytes for row in store.listing(place)) for place in get_args(Place)}
    return {"logs": sizes["live"] + sizes["aside"], "trash": sizes["deleted"]}


def blob_bytes(store: Store) -> int:
    """Return the size of all blobs in bytes. Raises `Unsupported`."""
    return _measured(store).disk()["blobs"]


def is_scattered(store: Store) -> bool:
    """Whether the blobs are spread over so many places that a collection is due."""
    scattered = ability(store, can.ScatterBlobs)
    return scattered is not None and scattered.is_scattered()


def unneeded(store: Store, needed: Container[str]) -> Freed:
    """Return about what a collection would remove."""
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
    """Return derived data as it was last saved; empty if there is none."""
    cache = ability(store, can.CacheData)
    return cache.load(name) if cache is not None else b""


def save(store: Store, name: str, data: bytes) -> None:
    """Save derived data, which can be recomputed."""
    cache = ability(store, can.CacheData)
    if cache is not None:
        cache.save(name, data)


def health(store: Store) -> dict[str, Any]:
    """Return a report for people and monitors; `ok` says whether the store works."""
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
    """Return device and inode of the store's own folders, so that checkpoints can exclude them."""
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
    """Return the entry with that id, or None."""
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
    """Return a value that changes whenever the log changes; None if only reading the log would show that."""
    stamping = ability(log, can.StampLog)
    return None if stamping is None else stamping.stamp()


def version(log: Log) -> object:
    """See `VersionLog`; None if earlier lines never change."""
    versioned = ability(log, can.VersionLog)
    return None if versioned is None else versioned.version()


def erases(store: Logs) -> can.EraseEntries:
    """Return the store as one that can erase. Raises `Unsupported`."""
    eraser = ability(store, can.EraseEntries)
    if eraser is None:
        raise Unsupported("this store cannot erase single entries", hint="purge the session instead")
    return eraser


def erasures(store: Logs, first: str | None = None) -> dict[str, list[Erasure]]:
    """Return the erasures by the id of the log's first entry; none if the store cannot erase."""
    eraser = ability(store, can.EraseEntries)
    return {} if eraser is None else eraser.erasures(first)


def subscribe(log: Log, callback: Callable[[], None]) -> Callable[[], None] | None:
    """See `NotifyNewEntries`; None if the store cannot notify."""
    notifying = ability(log, can.NotifyNewEntries)
    return None if notifying is None else notifying.subscribe(callback)
