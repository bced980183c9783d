"""Collection: remove unneeded packs, rewrite packs with little needed content, merge small packs."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import NamedTuple

from turnlog.errors import Corrupt
from turnlog.log.payload import digest_of_key
from turnlog.store import Freed
from turnlog.store.files.packs import Packs
from turnlog.store.files.packwriter import PackWriter

_SMALL = 1 << 20
"""A smaller pack is merged with others."""
_SPARSE = 0.1
"""A pack is rewritten if more than this share of it is not needed."""
_MANY = 32
"""A collection is due if there are more small packs than this."""


class _Plan(NamedTuple):
    """What a collection does to each pack."""

    unneeded: list[str]
    """Packs to remove, because none of their blobs is needed."""
    needed_of: dict[str, list[bytes]]
    """Packs to rewrite, with the keys of those of their blobs that are needed."""


_Contents = dict[str, list[tuple[int, bytes]]]
"""The offset and key of every blob, by pack."""


def collect(packs: Packs, needed: Container[str], *, prepared: str, strictly: bool) -> Freed:
    """Remove unneeded blobs. Blobs that stay are on the disk in their new pack before the old pack is removed.

    `prepared` is the result of `prepare`; "" for none. The caller holds the lock that keeps writers out.
    """
    packs.learn()
    contents = _contents(packs)
    plan = _plan(packs, contents, needed, prepared=prepared, strictly=strictly)
    blobs = sum(len(contents[name]) for name in plan.unneeded)
    # These are removed first: on a full disk, that makes room for the rest.
    freed = _remove(packs, plan.unneeded)
    if not plan.needed_of:
        return Freed(blobs, freed)
    is_merged = prepared in contents and prepared not in plan.unneeded and prepared not in plan.needed_of
    prepared = prepared if is_merged else ""
    target, damaged = _merge(packs, plan.needed_of, without={key for _, key in contents.get(prepared, [])})
    freed -= sum(_size(packs, name) for name in {target, prepared} - {""})
    rewritten = {name: keys for name, keys in plan.needed_of.items() if name not in damaged}
    freed += _size(packs, target) if target in rewritten else 0  # the same pack again
    freed += _remove(packs, [name for name in rewritten if name != target])
    blobs += sum(len(contents[name]) - len(keys) for name, keys in rewritten.items())
    return Freed(blobs, freed)


def _remove(packs: Packs, names: list[str]) -> int:
    """Remove packs. Returns the size that they had."""
    size = 0
    for name in names:
        size += _size(packs, name)
        packs.disk.unlink(os.path.join(packs.folder, name))
    if names:
        packs.disk.sync_folder(packs.folder)
        packs.learn()
    return size


def _contents(packs: Packs) -> _Contents:
    return {name: packs.objects(name) for name in packs.names()}


def _size(packs: Packs, name: str) -> int:
    return packs.disk.stat(os.path.join(packs.folder, name)).st_size


def are_many_small(packs: Packs) -> bool:
    """Whether there are so many small packs that reading all of them is noticeably slow."""
    return sum(_size(packs, name) < _SMALL for name in packs.names()) > _MANY


def prepare(packs: Packs, needed: Container[str], *, strictly: bool) -> str:
    """Rewrite the packs that `collect` would rewrite, concurrently with other work, so that `collect` is quick.

    Returns the name of the new pack; "" if there is none.
    """
    packs.learn()
    contents = _contents(packs)
    plan = _plan(packs, contents, needed, prepared="", strictly=strictly)
    if not plan.needed_of:
        return ""
    target, _ = _merge(packs, plan.needed_of, without=())
    return "" if target in contents else target


def _plan(packs: Packs, contents: _Contents, needed: Container[str], *, prepared: str, strictly: bool) -> _Plan:
    plan = _Plan([], {})
    for name, objects in contents.items():
        if not objects:
            continue  # its content is unknown, so it stays
        live = [key for _, key in objects if digest_of_key(key) in needed]
        is_whole = len(live) == len(objects)
        if name == prepared and (is_whole or not strictly):
            continue  # it was written a moment ago
        size = _size(packs, name)
        dead = sum(share for key, share in _shares(objects, size) if digest_of_key(key) not in needed)
        if not live:
            plan.unneeded.append(name)
        elif not is_whole if strictly else dead > size * _SPARSE or size < _SMALL:
            plan.needed_of[name] = live
    if len(plan.needed_of) == 1 and not prepared:
        [(name, live)] = plan.needed_of.items()
        if len(live) == len(contents[name]):
            plan.needed_of.clear()  # a whole pack, and no other to merge it with
    return plan


def _shares(objects: list[tuple[int, bytes]], size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the size of each blob in a pack; the blobs of one block share its size evenly."""
    groups: dict[int, list[bytes]] = {}
    for offset, key in objects:
        groups.setdefault(offset, []).append(key)
    ends = [*list(groups)[1:], size]
    for (offset, keys), end in zip(groups.items(), ends, strict=True):
        for key in keys:
            yield key, (end - offset) // len(keys)


def _merge(packs: Packs, needed_of: dict[str, list[bytes]], *, without: Container[bytes]) -> tuple[str, set[str]]:
    """Write needed blobs of these packs, except those in `without`, into one new pack.

    Returns its name, "" if nothing had to be written, and the damaged packs, which stay.
    """
    damaged: set[str] = set()
    with PackWriter(packs, anew=True) as writer:
        for name, keys in needed_of.items():
            try:
                for key in keys:
                    if key not in without:
                        writer.copy(key)
            except Corrupt:
                damaged.add(name)
    return writer.name, damaged


def unneeded(packs: Packs, needed: Container[str]) -> Freed:
    """Return about what a collection would remove."""
    blobs = size = 0
    for name in packs.names():
        objects = packs.objects(name)
        for key, share in _shares(objects, _size(packs, name)) if objects else ():
            if digest_of_key(key) not in needed:
                blobs += 1
                size += share
    return Freed(blobs, size)
