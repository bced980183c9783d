"""Giving space back: packs nobody needs go, packs with little left in them are written anew, small ones together."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterator

from turnlog.errors import Corrupt
from turnlog.log.payload import digest_key
from turnlog.store.files.disk import Disk
from turnlog.store.files.packs import Packs

_SMALL = 1 << 20
_SPARSE = 0.1


def collect(packs: Packs, disk: Disk, folder: str, needed: Container[str]) -> dict[str, int]:
    """Remove what is not needed. Whatever is kept is on the disk in its new place before the old one goes.

    The caller holds the lock that keeps writers out.
    """
    packs.learn()
    contents = {name: packs.objects(name) for name in packs.names()}
    empty, wanted = _plan(packs, disk, folder, contents, needed)
    freed = gone = 0
    for name in empty:
        # These go first: where the disk is full, that is the room for the rest.
        freed += disk.stat(os.path.join(folder, name)).st_size
        gone += len(contents[name])
        disk.unlink(os.path.join(folder, name))
    if empty:
        disk.sync_folder(folder)
        packs.learn()
    if not wanted:
        return {"blobs": gone, "bytes": freed, "packs": len(contents) - len(empty)}
    prepared = packs.prepared if packs.prepared in contents else ""
    there = {key for _, key in contents.get(prepared, [])}
    missing = {name: [key for key in keys if key not in there] for name, keys in wanted.items()}
    target, kept = _write_together(packs, [name for name, keys in missing.items() if keys], missing)
    for name in {target, prepared} - {""}:
        freed -= disk.stat(os.path.join(folder, name)).st_size
    for name in wanted:
        if name in kept:
            continue
        freed += disk.stat(os.path.join(folder, name)).st_size
        gone += len(contents[name]) - len(wanted[name])
        if name != target:
            disk.unlink(os.path.join(folder, name))
    disk.sync_folder(folder)
    packs.prepared = ""
    packs.learn()
    return {"blobs": gone, "bytes": freed, "packs": len(packs.names())}


def prepare(packs: Packs, disk: Disk, folder: str, needed: Container[str]) -> None:
    """Write anew what `collect` would have to, beside everybody else: then it has little more to do than remove."""
    packs.learn()
    packs.prepared = ""
    contents = {name: packs.objects(name) for name in packs.names()}
    _, wanted = _plan(packs, disk, folder, contents, needed)
    if wanted:
        target, _ = _write_together(packs, list(wanted), wanted)
        packs.prepared = "" if target in contents else target


def _plan(
    packs: Packs, disk: Disk, folder: str, contents: dict[str, list[tuple[int, bytes]]], needed: Container[str]
) -> tuple[list[str], dict[str, list[bytes]]]:
    """The packs that nobody needs; and those to be written anew, with what is needed of them."""
    empty: list[str] = []
    wanted: dict[str, list[bytes]] = {}
    for name, objects in contents.items():
        if not objects or name == packs.prepared:
            continue  # nobody can say what is in it, or it was only just written: it stays
        size = disk.stat(os.path.join(folder, name)).st_size
        live = [key for _, key in objects if "sha256:" + key.hex() in needed]
        dead = sum(share for key, share in _shares(objects, size) if "sha256:" + key.hex() not in needed)
        if not live:
            empty.append(name)
        elif dead > size * _SPARSE or size < _SMALL:
            wanted[name] = live
    if len(wanted) == 1 and not packs.prepared:
        [(name, live)] = wanted.items()
        if len(live) == len(contents[name]):
            return empty, {}
    return empty, wanted


def forget(packs: Packs, disk: Disk, folder: str, digests: Collection[str]) -> set[str]:
    """Remove these blobs and no other: every pack that has one is written anew without it. Returns those that stay."""
    keys = {digest_key(name) for name in digests}
    packs.learn()
    contents = {name: [key for _, key in packs.objects(name)] for name in packs.names()}
    wanted = {
        name: [key for key in held if key not in keys] for name, held in contents.items() if not keys.isdisjoint(held)
    }
    there = set(contents[packs.prepared] if packs.prepared in contents.keys() - wanted.keys() else [])
    missing = {name: [key for key in held if key not in there] for name, held in wanted.items()}
    target, kept = _write_together(packs, list(missing), missing)
    for name in wanted:
        if name not in kept and name != target:
            disk.unlink(os.path.join(folder, name))
    disk.sync_folder(folder)
    left = packs.learn()
    return {name for name in digests if digest_key(name) in left}


def _shares(objects: list[tuple[int, bytes]], size: int) -> Iterator[tuple[bytes, int]]:
    """How much of a pack each blob takes; those in one block share it evenly."""
    groups: dict[int, list[bytes]] = {}
    for offset, key in objects:
        groups.setdefault(offset, []).append(key)
    ends = [*list(groups)[1:], size]
    for (offset, keys), end in zip(groups.items(), ends, strict=True):
        for key in keys:
            yield key, (end - offset) // len(keys)


def _write_together(packs: Packs, names: list[str], wanted: dict[str, list[bytes]]) -> tuple[str, set[str]]:
    """One new pack with what is needed of these; its name, and those that have to stay because of damage in them."""
    kept: set[str] = set()
    with packs.writer(anew=True) as writer:
        for name in names:
            try:
                for key in wanted[name]:
                    writer.copy(key)
            except Corrupt:
                kept.add(name)
    return writer.name, kept


def unneeded(packs: Packs, disk: Disk, folder: str, needed: Container[str]) -> dict[str, int]:
    """How many blobs a collection would remove, and how many bytes they take, about."""
    blobs = size = 0
    for name in packs.names():
        objects = packs.objects(name)
        for key, share in _shares(objects, disk.stat(os.path.join(folder, name)).st_size) if objects else ():
            if "sha256:" + key.hex() not in needed:
                blobs += 1
                size += share
    return {"blobs": blobs, "bytes": size}
