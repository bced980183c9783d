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
    rewrite: list[str] = []
    wanted: dict[str, list[bytes]] = {}
    empty: list[str] = []
    freed = gone = 0
    for name, objects in contents.items():
        if not objects:
            continue  # nobody can say what is in it: it stays
        size = disk.stat(os.path.join(folder, name)).st_size
        live = [key for _, key in objects if "sha256:" + key.hex() in needed]
        dead = sum(share for key, share in _shares(objects, size) if "sha256:" + key.hex() not in needed)
        if not live:
            # These go first: where the disk is full, that is the room for the rest.
            disk.unlink(os.path.join(folder, name))
            empty.append(name)
            freed += size
            gone += len(objects)
        elif dead > size * _SPARSE or size < _SMALL:
            rewrite.append(name)
            wanted[name] = live
    if empty:
        disk.sync_folder(folder)
        packs.learn()
    if len(rewrite) == 1 and len(wanted[rewrite[0]]) == len(contents[rewrite[0]]):
        rewrite = []
    if not rewrite:
        return {"blobs": gone, "bytes": freed, "packs": len(contents) - len(empty)}
    target, kept = _write_together(packs, rewrite, wanted)
    freed -= disk.stat(os.path.join(folder, target)).st_size if target else 0
    for name in rewrite:
        if name in kept:
            continue
        freed += disk.stat(os.path.join(folder, name)).st_size
        gone += len(contents[name]) - len(wanted[name])
        if name != target:
            disk.unlink(os.path.join(folder, name))
    disk.sync_folder(folder)
    packs.learn()
    return {"blobs": gone, "bytes": freed, "packs": len(packs.names())}


def forget(packs: Packs, disk: Disk, folder: str, digests: Collection[str]) -> set[str]:
    """Remove these blobs and no other: every pack that has one is written anew without it. Returns those that stay."""
    keys = {digest_key(name) for name in digests}
    packs.learn()
    contents = {name: [key for _, key in packs.objects(name)] for name in packs.names()}
    wanted = {
        name: [key for key in held if key not in keys] for name, held in contents.items() if not keys.isdisjoint(held)
    }
    target, kept = _write_together(packs, list(wanted), wanted)
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
