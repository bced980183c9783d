"""Listing sessions newest first, reading as few files as possible."""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Iterable, Iterator
from math import inf

from turnlog.store import Listed
from turnlog.store.files.disk import Disk
from turnlog.store.files.glimpse import glimpse

_COARSE_S = 2.0
"""How much older than its last entry a file may seem: some file systems have such coarse times."""


def newest_first(disk: Disk, folder: str, names: Iterable[str]) -> Iterator[Listed]:
    """Yield sessions newest first. A file's modification time is not before its last entry, so older files can wait.

    If a file contradicts that, a clock was wrong, and all files are read.
    """
    changed: list[tuple[float, str]] = []
    for name in names:
        try:
            changed.append((disk.stat(os.path.join(folder, name)).st_mtime + _COARSE_S, name))
        except OSError:
            changed.append((inf, name))
    changed.sort()
    rows: list[Listed] = []
    is_wrong = False
    while changed or rows:
        if rows and (not changed or (not is_wrong and rows[-1].order.at_ms / 1000 > changed[-1][0])):
            yield rows.pop()
            continue
        time, name = changed.pop()
        row = glimpse(disk, folder, name)
        if row is not None:
            insort(rows, row, key=lambda row: row.order)
            is_wrong = is_wrong or row.order.at_ms / 1000 > time
