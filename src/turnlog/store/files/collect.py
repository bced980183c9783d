"""Giving space back: packs nobody needs go, packs with little left in them are written anew, small ones together."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator

from turnlog.errors import Corrupt
from turnlog.store import Freed
from turnlog.store.files.packs import Packs
from turnlog.store.files.packwriter import PackWriter

_SMALL = 1 << 20
_SPARSE = 0.1
_MANY = 32


def collect(packs: Packs, needed: Container[str], *, strictly: bool) -> Freed:
    """Remove what is not needed. Whatever is kept is on the disk in its new place before the old one goes.

    The caller holds the lock that keeps writers out.
    """
    disk, folder = packs.disk, packs.folder
    packs.learn()
    contents = {name: packs.objects(name) for name in packs.names()}
    empty, wanted = _plan(packs, contents, needed, strictly)
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
        return Freed(gone, freed)
    prepared = packs.prepared if packs.prepared in contents.keys() - wanted.keys() - {*empty} else ""
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
    return Freed(gone, freed)


def are_many_small(packs: Packs) -> bool:
    """Whether there are so many small packs that whoever looks into all of them takes notice."""
    sizes = (packs.disk.stat(os.path.join(packs.folder, name)).st_size for name in packs.names())
    return sum(size < _SMALL for size in sizes) > _MANY


def prepare(packs: Packs, needed: Container[str], *, strictly: bool) -> None:
    """Write anew what `collect` would have to, beside everybody else: then it has little more to do than remove."""
    packs.learn()
    packs.prepared = ""
    contents = {name: packs.objects(name) for name in packs.names()}
    _, wanted = _plan(packs, contents, needed, strictly)
    if wanted:
        target, _ = _write_together(packs, list(wanted), wanted)
        packs.prepared = "" if target in contents else target


def _plan(
    packs: Packs, contents: dict[str, list[tuple[int, bytes]]], needed: Container[str], strictly: bool
) -> tuple[list[str], dict[str, list[bytes]]]:
    """The packs that nobody needs; and those to be written anew, with what is needed of them."""
    empty: list[str] = []
    wanted: dict[str, list[bytes]] = {}
    for name, objects in contents.items():
        if not objects:
            continue  # nobody can say what is in it: it stays
        live = [key for _, key in objects if "sha256:" + key.hex() in needed]
        is_whole = len(live) == len(objects)
        if name == packs.prepared and (is_whole or not strictly):
            continue  # it was only just written
        size = packs.disk.stat(os.path.join(packs.folder, name)).st_size
        dead = sum(share for key, share in _shares(objects, size) if "sha256:" + key.hex() not in needed)
        if not live:
            empty.append(name)
        elif not is_whole if strictly else dead > size * _SPARSE or size < _SMALL:
            wanted[name] = live
    if len(wanted) == 1 and not packs.prepared:
        [(name, live)] = wanted.items()
        if len(live) == len(contents[name]):
            return empty, {}
    return empty, wanted


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
    with PackWriter(packs, anew=True) as writer:
        for name in names:
            try:
                for key in wanted[name]:
                    writer.copy(key)
            except Corrupt:
                kept.add(name)
    return writer.name, kept


def unneeded(packs: Packs, needed: Container[str]) -> dict[str, int]:
    """How many blobs a collection would remove, and how many bytes they take, about."""
    blobs = size = 0
    for name in packs.names():
        objects = packs.objects(name)
        whole = packs.disk.stat(os.path.join(packs.folder, name)).st_size
        for key, share in _shares(objects, whole) if objects else ():
            if "sha256:" + key.hex() not in needed:
                blobs += 1
                size += share
    return {"blobs": blobs, "bytes": size}
