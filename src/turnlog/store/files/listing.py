"""The listings of a home: its logs as rows, whole, by id or newest first, and the logs themselves."""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING

from msgspec.json import encode
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.layout import BASES, SESSIONS, TRASH
from turnlog.store import Clock, Listed, Place
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.glimpse import glimpse
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.names import session_id_of
from turnlog.store.listing import ListingCursor, is_like, rest_after

if TYPE_CHECKING:
    from turnlog.store.files.sessionfile import SessionFile

_FOLDERS: dict[Place, str] = {"live": SESSIONS, "deleted": TRASH, "aside": BASES}
_COARSE_S = 2.0
"""How much older than its last entry a file may seem: some file systems have such coarse times."""


class FileListing:
    """The listings of a home."""

    def __init__(self, home: HomeFolder, clock: Clock) -> None:
        self._home = home
        self._disk = home.disk
        self._clock = clock

    def listing(self, place: Place = "live", *, ids: Collection[str] | None = None) -> Iterator[Listed]:
        if ids is None:
            return rows_in(self._home, _FOLDERS[place])
        if place == "aside":  # their files are named by their first entries
            return (row for row in rows_in(self._home, BASES) if row.id in ids)
        return self._rows_of(_FOLDERS[place], ids)

    def _rows_of(self, subfolder: str, ids: Collection[str]) -> Iterator[Listed]:
        for session_id in dict.fromkeys(ids):
            with suppress(Invalid), disk_errors(f"looking for session {session_id}"):
                name = os.path.basename(self._home.path(subfolder, session_id))
                if subfolder == TRASH and self._home.is_also_live(name):
                    continue
                row = _row(self._home, subfolder, name)
                if row is not None and row.id == session_id:
                    yield row

    def newest(self, *, deleted: bool = False, after: ListingCursor | None = None) -> Iterator[Listed]:
        return rest_after(self._newest_first(TRASH if deleted else SESSIONS), after)

    def _newest_first(self, subfolder: str) -> Iterator[Listed]:
        """Yield rows newest first. A file's modification time is not before its last entry, so older files can wait.

        If a file contradicts that, a clock was wrong, and all files are read.
        """
        folder = os.path.join(self._home.folder, subfolder)
        changed: list[tuple[float, str]] = []
        rows: list[Listed] = []
        is_wrong = False
        with disk_errors(f"listing the sessions in {folder}"):
            for name in self._home.names(subfolder):
                try:
                    changed.append((self._disk.stat(os.path.join(folder, name)).st_mtime + _COARSE_S, name))
                except OSError:
                    changed.append((inf, name))
            changed.sort()
            while changed or rows:
                if rows and (not changed or (not is_wrong and rows[-1].order.at_ms / 1000 > changed[-1][0])):
                    yield rows.pop()
                    continue
                time, name = changed.pop()
                row = _row(self._home, subfolder, name)
                if row is not None:
                    insort(rows, row, key=lambda row: row.order)
                    is_wrong = is_wrong or row.order.at_ms / 1000 > time

    def ids(self, *, like: str = "", deleted: bool = False) -> Iterable[str]:
        subfolder = TRASH if deleted else SESSIONS
        with disk_errors(f"listing the sessions in {self._home.folder}"):
            for name in self._home.names(subfolder):
                session_id = session_id_of(name)
                if session_id is None:
                    row = _row(self._home, subfolder, name)
                    session_id = row.id if row is not None else None
                if session_id is not None and is_like(session_id, like):
                    yield session_id

    def _open_log(self, path: str, session_id: str) -> SessionFile:
        from turnlog.store.files.sessionfile import SessionFile  # loaded late: a listing opens no log

        return SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)

    def all_logs(self) -> Iterator[SessionFile]:
        for subfolder in (SESSIONS, TRASH, BASES):
            with disk_errors(f"listing the sessions in {self._home.folder}"):
                names = self._home.names(subfolder)
            for name in names:
                session_id = session_id_of(name) or name
                if subfolder == BASES:  # these files are named by their first entries
                    row = _row(self._home, subfolder, name)
                    session_id = row.id if row is not None and row.start is not None else session_id
                yield self._open_log(os.path.join(self._home.folder, subfolder, name), session_id)

    def holder_of(self, entry_id: str) -> str | None:
        """See `FindHolder`. Files are searched as bytes; only those that contain the id are decoded."""
        try:
            wanted = b'"id":' + encode(entry_id)
        except UnicodeEncodeError:
            return None  # no entry can have this id
        with disk_errors(f"looking for an entry in {self._home.folder}"):
            names = self._home.names(SESSIONS)
        for name in names:
            path = os.path.join(self._home.folder, SESSIONS, name)
            with disk_errors(f"looking for an entry in {path}"):
                if not self._disk.holds(path, wanted):
                    continue
            log = self._open_log(path, session_id_of(name) or name)
            try:
                if log.find(entry_id) is not None:
                    row = _row(self._home, SESSIONS, name)
                    return row.id if row is not None else None
            finally:
                log.close()
        return None


def rows_in(home: HomeFolder, subfolder: str) -> Iterator[Listed]:
    """Yield the logs in a subfolder of the home, as listings show them."""
    with disk_errors(f"listing the sessions in {os.path.join(home.folder, subfolder)}"):
        for name in home.names(subfolder):
            row = _row(home, subfolder, name)
            if row is not None:
                yield row


def _row(home: HomeFolder, subfolder: str, name: str) -> Listed | None:
    """Return the log in that file as listings show it; None if the file was removed meanwhile."""
    row = glimpse(home.disk, os.path.join(home.folder, subfolder), name)
    return row if row is None or subfolder != TRASH else replace(row, deleted_at=_moved_at(home, name))


def _moved_at(home: HomeFolder, name: str) -> datetime | None:
    """Return when a file was moved to the trash, or later: the inode change time, which that move set."""
    try:
        return datetime.fromtimestamp(home.disk.stat(os.path.join(home.folder, TRASH, name)).st_ctime, UTC)
    except FileNotFoundError:
        return None
