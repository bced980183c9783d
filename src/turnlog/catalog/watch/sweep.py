"""Checks which files and folders have changed. Nothing is opened, and nothing is imported for it."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import LARGEST, LATEST, path_of
from turnlog.catalog.index.sqlite.watchlist import OURS, Stamp
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.index.sqlite.watchlist import Watchlist
    from turnlog.store import Listed, Store

YOUNG_NS = 2_000_000_000
"""What changed this shortly before it was examined may change again without looking different."""
FOLDER, DANGLING, SPECIAL, ABSENT = -1, -2, -3, -4
"""The sizes recorded for what is no file: a folder, a dangling link, a pipe or a device, nothing yet."""


class WatchedFile(NamedTuple):
    """A file or folder that was examined before."""

    id: int
    path: str


class WatchedFolder(NamedTuple):
    """A folder that was examined before."""

    id: int
    agent: str
    home: str
    path: str


class GrownSession:
    """A session of ours in a store without files that has changed, and the ends of its log."""

    __slots__ = ("ends", "is_deleted", "listed")

    def __init__(self, listed: Listed, is_deleted: bool, ends: str) -> None:
        self.listed = listed
        self.is_deleted = is_deleted
        self.ends = ends


class Changes:
    """What has changed. Empty if nothing has to be read."""

    def __init__(
        self,
        files: Sequence[WatchedFile] = (),
        folders: Sequence[WatchedFolder] = (),
        homes: Sequence[tuple[str, str]] = (),
        *,
        grown: Sequence[GrownSession] = (),
        gone: Sequence[int] = (),
    ) -> None:
        self.files = files
        self.folders = folders
        """Folders whose entries have changed."""
        self.homes = homes
        """Agents and folders that were never examined."""
        self.grown = grown
        """Sessions of ours in a store without files that have changed."""
        self.gone = gone
        """The numbers of sessions that are gone from such a store."""

    def __bool__(self) -> bool:
        return any((self.files, self.folders, self.homes, self.grown, self.gone))

    @property
    def roots(self) -> list[tuple[str, str]]:
        """The agents and folders that may have new entries."""
        return [*self.homes, *((folder.agent, folder.path) for folder in self.folders)]


def stamp_of(path: str) -> Stamp | None:
    """The stamp of a file; None if there is none. What is no regular file has a negative size."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return Stamp(DANGLING, 0, 0) if os.path.islink(path) else None
    return _stamp(status)


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(_size(status), mtime_of(status), status.st_ino & LARGEST)


def mtime_of(status: os.stat_result) -> int:
    """When a file was changed, in nanoseconds, within the limits of a column: some file systems know later years."""
    return min(max(status.st_mtime_ns, 0), LATEST * 1_000_000)


def _size(status: os.stat_result) -> int:
    mode = status.st_mode
    return status.st_size if S_ISREG(mode) else FOLDER if S_ISDIR(mode) else SPECIAL


def purged(watchlist: Watchlist) -> Changes:
    """Only our files that are gone, or were rewritten because something was erased."""
    purged_files: list[WatchedFile] = []
    for id, path, inode in watchlist.inodes_of(OURS):
        stamp = stamp_of(path)
        if stamp is None or (stamp.size >= 0 and stamp.inode != inode):
            purged_files.append(WatchedFile(id, path))
    return Changes(purged_files)


def _ends_of(listed: Listed, erased: int) -> str:
    """The ends of a log as text, which differs if it is another log, was appended to, or anything was erased."""
    return f"{listed.first} {listed.last.id if listed.last is not None else ''} {erased}"


def compared(watchlist: Watchlist, store: Store) -> Changes:
    """Compare what the index has of our sessions in a store without files with those that it has now."""
    from turnlog.store.derived import erasures

    known_ends = watchlist.own_ends()
    # If a deleted session has the same id, the live one counts.
    there = {
        listed.id: (listed, place == "deleted") for place in ("deleted", "live") for listed in store.listing(place)
    }
    erased = sum(map(len, erasures(store).values()))  # of all sessions: forks repeat entries of others
    grown: list[GrownSession] = []
    for id, (listed, is_deleted) in there.items():
        session = GrownSession(listed, is_deleted, _ends_of(listed, erased))
        _, known, was_deleted = known_ends.get(id, (0, None, 0))
        if (session.ends, is_deleted) != (known, bool(was_deleted)):
            grown.append(session)
    return Changes(grown=grown, gone=[number for id, (number, *_) in known_ends.items() if id not in there])


def _is_new(watchlist: Watchlist, home: str) -> bool:
    """Whether a home is a folder, or a file with all sessions that was not examined yet."""
    try:
        mode = os.stat(home).st_mode
    except (OSError, ValueError):
        return False
    return S_ISDIR(mode) or (S_ISREG(mode) and not watchlist.has_file(home))


def sweep(watchlist: Watchlist, homes: list[tuple[str, str]], *, agents: bool) -> Changes:
    """Compare the disk with the watchlist."""
    stat = os.stat
    folders: list[WatchedFolder] = []
    seen: set[tuple[str, str]] = set()
    for number, agent, home, path, mtime in watchlist.folders():
        if agent and not agents:
            continue
        path_now = path_of(path)
        seen.add((agent, path_now))
        try:
            now = mtime_of(stat(path_now))
        except OSError:
            now = -1
        if now != mtime:
            folders.append(WatchedFolder(number, agent, path_of(home), path_now))
    fresh = [pair for pair in homes if pair not in seen and _is_new(watchlist, pair[1])]
    files: list[WatchedFile] = []
    for number, path, size, mtime, inode, is_foreign in watchlist.files():
        if is_foreign and not agents:
            continue
        path_now = path if type(path) is str else path_of(path)
        try:
            status = stat(path_now)
        except (OSError, ValueError):
            if size != ABSENT and (size != DANGLING or not os.path.islink(path_now)):
                files.append(WatchedFile(number, path_now))
            continue
        is_same = status.st_size == size and status.st_mtime_ns == mtime and status.st_ino == inode
        if not is_same and _stamp(status) != (size, mtime, inode):
            files.append(WatchedFile(number, path_now))
    return Changes(files, folders, fresh)
