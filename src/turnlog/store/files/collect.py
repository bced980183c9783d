"""Giving space back: packs nobody needs go, packs with little left in them are written anew, small ones together."""

from __future__ import annotations

import os
from collections.abc import Container

from turnlog.store.files.disk import Disk
from turnlog.store.files.packs import Packs

_SMALL = 1 << 20
_SPARSE = 0.5


def collect(packs: Packs, disk: Disk, folder: str, needed: Container[str]) -> dict[str, int]:
    """Remove what is not needed. Whatever is kept is on the disk in its new place before the old one goes.

    The caller holds the lock that keeps writers out.
    """
    places = packs.learn()
    live: dict[str, list[bytes]] = {}
    count: dict[str, int] = {}
    for key, (name, _) in places.items():
        count[name] = count.get(name, 0) + 1
        live.setdefault(name, [])
        if "sha256:" + key.hex() in needed:
            live[name].append(key)
    rewrite: list[str] = []
    freed = moved = gone = 0
    names = packs.names()
    for name in names:
        size = disk.stat(os.path.join(folder, name)).st_size
        kept = live.get(name, [])
        gone += count.get(name, 0) - len(kept)
        if len(kept) < count.get(name, 0) * _SPARSE or size < _SMALL or not kept:
            rewrite.append(name)
            freed += size
    wanted = [key for name in rewrite for key in live.get(name, [])]
    if len(rewrite) == 1 and len(wanted) == count.get(rewrite[0], 0):
        return {"blobs": 0, "bytes": 0, "packs": len(names)}
    target = ""
    if wanted:
        with packs.writer(anew=True) as writer:
            for key in wanted:
                writer.copy(key)
                moved += 1
        target = writer.name
        freed -= disk.stat(os.path.join(folder, target)).st_size
    for name in rewrite:
        if name != target:
            disk.unlink(os.path.join(folder, name))
    disk.sync_folder(folder)
    packs.learn()
    return {"blobs": gone, "bytes": freed, "packs": len(packs.names())}
