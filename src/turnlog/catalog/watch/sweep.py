"""A look at the disk: which files and folders are not as they were. Nothing is opened, nothing is imported for it."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.index.texts import path_of

if TYPE_CHECKING:
    import sqlite3

YOUNG_NS = 2_000_000_000
"""What changed so shortly before it was looked at may change again without looking different."""
FOLDER, DANGLING, SPECIAL, ABSENT = -1, -2, -3, -4
"""The sizes of what is no file: a folder, a link that leads nowhere, a pipe or a device, nothing yet."""
_PROOF = 4096
OURS = ""
"""Stands for the agent where a folder has sessions of ours."""


class Stamp(NamedTuple):
    """How a file looks from outside."""

    size: int
    mtime: int
    inode: int


class Known(NamedTuple):
    """A file or folder that was looked at before."""

    id: int
    path: str


class Changes(NamedTuple):
    """What is not as it was. Empty if nothing has to be read."""

    files: list[Known]
    folders: list[tuple[int, str, str, str]]
    """The number, agent, home and path of folders whose names are others."""
    homes: list[tuple[str, str]]
    """Agents and folders that nobody has looked at yet."""

    def __bool__(self) -> bool:
        return bool(self.files or self.folders or self.homes)


def stamp_of(path: str) -> Stamp | None:
    """The stamp of a file; None if there is none. What is no regular file has a size below zero."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return Stamp(DANGLING, 0, 0) if os.path.islink(path) else None
    return Stamp(_size(found), found.st_mtime_ns, found.st_ino)


def proof(path: str, size: int) -> bytes:
    """What the beginning of a file and the end of its first `size` bytes come to: the same as long as it only grows."""
    from hashlib import blake2b

    found = blake2b(digest_size=8)
    with open(path, "rb") as file:
        found.update(file.read(min(size, _PROOF)))
        file.seek(max(0, size - _PROOF))
        found.update(file.read(min(size, _PROOF)))
    return found.digest()


def _size(found: os.stat_result) -> int:
    mode = found.st_mode
    return found.st_size if S_ISREG(mode) else FOLDER if S_ISDIR(mode) else SPECIAL


def purged(db: sqlite3.Connection) -> Changes:
    """The files of ours that are no longer there, and nothing else."""
    rows = db.execute("SELECT id, path FROM files WHERE agent = ?", (OURS,))
    return Changes([Known(id, path_of(path)) for id, path in rows if not os.path.lexists(path_of(path))], [], [])


def sweep(db: sqlite3.Connection, homes: list[tuple[str, str]], *, agents: bool) -> Changes:
    """Compare everything that is known with the disk."""
    stat = os.stat
    folders: list[tuple[int, str, str, str]] = []
    known: set[tuple[str, str]] = set()
    for number, agent, home, path, mtime in db.execute("SELECT id, agent, home, path, mtime FROM folders"):
        if agent and not agents:
            continue
        place = path_of(path)
        known.add((agent, place))
        try:
            now = stat(place).st_mtime_ns
        except OSError:
            now = -1
        if now != mtime:
            folders.append((number, agent, path_of(home), place))
    fresh = [pair for pair in homes if pair not in known and os.path.isdir(pair[1])]
    rows = db.execute("SELECT id, path, size, mtime, inode, is_foreign FROM files WHERE is_watched")
    files: list[Known] = []
    for number, path, size, mtime, inode, is_foreign in rows:
        if is_foreign and not agents:
            continue
        place = path if type(path) is str else path_of(path)
        try:
            found = stat(place)
        except (OSError, ValueError):
            if size != ABSENT and (size != DANGLING or not os.path.islink(place)):
                files.append(Known(number, place))
            continue
        if found.st_size != size or found.st_mtime_ns != mtime or found.st_ino != inode:
            if size < 0 and (_size(found), found.st_mtime_ns, found.st_ino) == (size, mtime, inode):
                continue
            files.append(Known(number, place))
    return Changes(files, folders, fresh)
