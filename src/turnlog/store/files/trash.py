"""Deleting, restoring and purging in the file store: a log gets its new name, and only then loses the old one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.layout import BASES, SESSIONS, TRASH
from turnlog.store import Clock, Listed
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.glimpse import first_id, glimpse
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.refusal import id_ambiguous, id_in_trash, id_taken, refuse_longer, session_missing


class _Needed(Struct, frozen=True):
    """What the forks of a session need of it."""

    first: str
    """What they call its first entry."""
    seq: int = 0
    """Up to which entry they need it; 0 if there are none."""
    is_unknown: bool = False
    """Whether a session cannot be read that may be one of them."""


class Trash:
    """Where logs go, and come back from. What forks need of a purged one stays aside."""

    def __init__(self, home: HomeFolder, blobs: FileBlobs, clock: Clock) -> None:
        self._home = home
        self._disk = home.disk
        self._blobs = blobs
        self._clock = clock

    def move(self, session_id: str, old: str, new: str, *, after: int | None = None) -> None:
        """A new name and then no old one: whatever is there under the new one meanwhile is not replaced."""
        with disk_errors(f"moving session {session_id} to {os.path.dirname(new)}"):
            if not self._disk.exists(old):
                raise session_missing(session_id)
            # A collection that looks through all sessions must not miss this one.
            with self._blobs.keeping(), self._disk.hold(old) as held:
                self._refuse_longer(session_id, old, after)
                try:
                    self._disk.link(old, new)
                except FileExistsError:
                    if not self._home.is_still(held.fileno(), new):  # a crash came between the two
                        raise (id_in_trash if os.path.dirname(new).endswith(TRASH) else id_taken)(session_id) from None
                self._disk.sync_folder(os.path.dirname(new))
                self._disk.unlink(old)
            self._disk.sync_folder(os.path.dirname(old))

    def _refuse_longer(self, session_id: str, path: str, after: int | None) -> None:
        if after is not None:
            row = glimpse(self._disk, *os.path.split(path))
            last = row.last if row is not None else None
            refuse_longer(session_id, last.seq if last is not None else 0, after)

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        live, trash = (self._home.path(place, session_id) for place in (SESSIONS, TRASH))
        self.move(session_id, live, trash, after=after)

    def restore(self, session_id: str) -> None:
        self.move(session_id, self._home.path(TRASH, session_id), self._home.path(SESSIONS, session_id))

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        """See `Logs.purge`. What forks need is on the disk in its new place before the old one goes."""
        with disk_errors(f"purging session {session_id}"):
            places = {False: self._home.path(SESSIONS, session_id), True: self._home.path(TRASH, session_id)}
            paths = [
                path for is_deleted, path in places.items() if deleted in (None, is_deleted) and self._disk.exists(path)
            ]
            if not paths:
                raise session_missing(session_id)
            if len(paths) > 1 and not os.path.samestat(*map(self._disk.stat, paths)):
                raise id_ambiguous(session_id)
            with self._blobs.exclusively():
                for path in paths:
                    self._purge(session_id, path, after)
                self._drop_unneeded_bases()

    def _purge(self, session_id: str, path: str, after: int | None) -> None:
        with self._disk.hold(path):
            self._refuse_longer(session_id, path, after)
            needed = self._needed(session_id, first_id(self._disk, path))
            if needed.is_unknown:
                raise Corrupt(
                    f"a session cannot be read, and may build on {session_id!r}",
                    hint="see which with `turnlog doctor`, and repair or purge that one first",
                )
            if needed.seq:
                from turnlog.store.files.sessionfile import SessionFile

                log = SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)
                try:
                    self._home.write_file(self._home.path(BASES, needed.first), log.prefix(needed.seq))
                finally:
                    log.close()
            self._disk.unlink(path)
            self._disk.sync_folder(os.path.dirname(path))

    def _needed(self, session_id: str, first: str | None) -> _Needed:
        needed = _Needed(first or session_id)
        for place in (SESSIONS, TRASH, BASES):
            for row in listed(self._home, place):
                if first in (None, row.first) and row.id == session_id:
                    continue
                if row.start is None:
                    return replace(needed, is_unknown=True)
                fork = row.start.fork
                if fork is not None and (fork.base == first if first else fork.session == session_id):
                    needed = _Needed(fork.base, fork.seq) if fork.seq > needed.seq else needed
        return needed

    def _is_unneeded(self, row: Listed) -> bool:
        needed = self._needed(row.id, row.first)
        return not needed.seq and not needed.is_unknown

    def _drop_unneeded_bases(self) -> None:
        dropped = True
        while dropped:
            dropped = False
            for name in self._home.names(BASES):
                row = glimpse(self._disk, os.path.join(self._home.folder, BASES), name)
                if row is not None and row.start is not None and self._is_unneeded(row):
                    self._disk.unlink(os.path.join(self._home.folder, BASES, name))
                    dropped = True


def listed(home: HomeFolder, place: str) -> Iterator[Listed]:
    """The logs of a place, as listings see them."""
    folder = os.path.join(home.folder, place)
    with disk_errors(f"listing the sessions in {folder}"):
        for name in home.names(place):
            row = glimpse(home.disk, folder, name)
            if row is not None:
                yield row if place != TRASH else replace(row, deleted_at=_moved_at(home, name))


def _moved_at(home: HomeFolder, name: str) -> datetime | None:
    """When a file came into the trash, or later: its name was the last thing of it that changed."""
    try:
        return datetime.fromtimestamp(home.disk.stat(os.path.join(home.folder, TRASH, name)).st_ctime, UTC)
    except FileNotFoundError:
        return None
