"""Giving space back: packs nobody needs go, packs with little left in them are written anew, small ones together."""

from __future__ import annotations

import os
from collections.abc import Container

from turnlog.store.files.disk import Disk
from turnlog.store.files.packs import Packs

_SMALL = 1 << 20
_SPARSE = 0.1


def collect(packs: Packs, disk: Disk, folder: str, needed: Container[str]) -> dict[str, int]:
    """Remove what is not needed. Whatever is kept is on the disk in its new place before the old one goes.

    The caller holds the lock that keeps writers out.
    """
    contents: dict[str, list[tuple[int, bytes]]] = {name: [] for name in packs.names()}
    for key, (name, offset) in packs.learn().items():
        contents[name].append((offset, key))
    rewrite: list[str] = []
    wanted: list[bytes] = []
    freed = gone = 0
    for name, objects in contents.items():
        size = disk.stat(os.path.join(folder, name)).st_size
        if not packs.is_known_whole(name):
            continue  # nobody can say what else is in it: it stays
        objects.sort()
        ends = [offset for offset, _ in objects[1:]] + [size]
        live = [key for _, key in objects if "sha256:" + key.hex() in needed]
        dead = sum(
            end - offset
            for (offset, key), end in zip(objects, ends, strict=False)
            if "sha256:" + key.hex() not in needed
        )
        if dead > size * _SPARSE or size < _SMALL or not live:
            rewrite.append(name)
            wanted += live
            freed += size
            gone += len(objects) - len(live)
    if len(rewrite) == 1 and not gone:
        return {"blobs": 0, "bytes": 0, "packs": len(contents)}
    target = ""
    if wanted:
        with packs.writer(anew=True) as writer:
            for key in wanted:
                writer.copy(key)
        target = writer.name
        freed -= disk.stat(os.path.join(folder, target)).st_size
    for name in rewrite:
        if name != target:
            disk.unlink(os.path.join(folder, name))
    disk.sync_folder(folder)
    packs.learn()
    return {"blobs": gone, "bytes": freed, "packs": len(packs.names())}
