"""Deleting, restoring and purging in the file store: a log gets its new name, and only then loses the old one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.layout import SESSIONS, TRASH
from turnlog.store import Clock, Listed, either, in_trash, no_session, refuse_longer, taken
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.glimpse import first_id, glimpse
from turnlog.store.files.layout import BASES, Layout

_UNKNOWN = 1 << 62


class Trash:
    """Where logs go, and come back from. What forks need of a purged one stays aside."""

    def __init__(self, layout: Layout, blobs: FileBlobs, clock: Clock) -> None:
        self._layout = layout
        self._disk = layout.disk
        self._blobs = blobs
        self._clock = clock

    def move(self, session_id: str, old: str, new: str, *, after: int | None = None) -> None:
        """A new name and then no old one: whatever is there under the new one meanwhile is not replaced."""
        with disk_errors(f"moving session {session_id} to {os.path.dirname(new)}"):
            if not self._disk.exists(old):
                raise no_session(session_id)
            # A collection that looks through all sessions must not miss this one.
            with self._blobs.keeping(), self._disk.hold(old) as held:
                self._refuse_longer(session_id, old, after)
                try:
                    self._disk.link(old, new)
                except FileExistsError:
                    if not self._layout.is_still(held.fileno(), new):  # somebody died between the two
                        raise (in_trash if os.path.dirname(new).endswith(TRASH) else taken)(session_id) from None
                self._disk.sync_folder(os.path.dirname(new))
                self._disk.unlink(old)
            self._disk.sync_folder(os.path.dirname(old))

    def _refuse_longer(self, session_id: str, path: str, after: int | None) -> None:
        if after is not None:
            row = glimpse(self._disk, *os.path.split(path))
            last = row.last if row is not None else None
            refuse_longer(session_id, last.seq if last is not None else 0, after)

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        live, trash = (self._layout.path(place, session_id) for place in (SESSIONS, TRASH))
        self.move(session_id, live, trash, after=after)

    def restore(self, session_id: str) -> None:
        self.move(session_id, self._layout.path(TRASH, session_id), self._layout.path(SESSIONS, session_id))

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        """See `Logs.purge`. What forks need is on the disk in its new place before the old one goes."""
        with disk_errors(f"purging session {session_id}"):
            places = {False: self._layout.path(SESSIONS, session_id), True: self._layout.path(TRASH, session_id)}
            paths = [path for is_it, path in places.items() if deleted in (None, is_it) and self._disk.exists(path)]
            if not paths:
                raise no_session(session_id)
            if len(paths) > 1 and not os.path.samestat(*map(self._disk.stat, paths)):
                raise either(session_id)
            with self._blobs.exclusively():
                for path in paths:
                    self._purge(session_id, path, after)
                self._drop_unneeded_bases()

    def _purge(self, session_id: str, path: str, after: int | None) -> None:
        with self._disk.hold(path):
            self._refuse_longer(session_id, path, after)
            first, needed = self._needed(session_id, first_id(self._disk, path))
            if needed == _UNKNOWN:
                raise Corrupt(
                    f"a session cannot be read, so nobody knows whether it builds on {session_id!r}",
                    hint="see which with `turnlog doctor`, and repair or purge that one first",
                )
            if needed:
                from turnlog.store.files.sessionfile import SessionFile

                log = SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)
                try:
                    self._layout.write_file(self._layout.path(BASES, first), log.prefix(needed))
                finally:
                    log.close()
            self._disk.unlink(path)
            self._disk.sync_folder(os.path.dirname(path))

    def _needed(self, session_id: str, first: str | None) -> tuple[str, int]:
        """What its forks call the first entry of that session, and up to which they need it; 0 if there are none."""
        name, needed = first or session_id, 0
        for place in (SESSIONS, TRASH, BASES):
            for row in listed(self._layout, place):
                if first in (None, row.first) and row.id == session_id:
                    continue
                if row.start is None:
                    return name, _UNKNOWN
                fork = row.start.fork
                if fork is not None and (fork.base == first if first else fork.session == session_id):
                    name, needed = (fork.base, fork.seq) if fork.seq > needed else (name, needed)
        return name, needed

    def _drop_unneeded_bases(self) -> None:
        dropped = True
        while dropped:
            dropped = False
            for name in self._layout.names(BASES):
                row = glimpse(self._disk, os.path.join(self._layout.folder, BASES), name)
                if row is not None and row.start is not None and not self._needed(row.id, row.first)[1]:
                    self._disk.unlink(os.path.join(self._layout.folder, BASES, name))
                    dropped = True


def listed(layout: Layout, place: str) -> Iterator[Listed]:
    """The logs of a place, as listings see them."""
    folder = os.path.join(layout.folder, place)
    with disk_errors(f"listing the sessions in {folder}"):
        for name in layout.names(place):
            row = glimpse(layout.disk, folder, name)
            if row is not None:
                yield row if place != TRASH else replace(row, deleted_at=_moved_at(layout, name))


def _moved_at(layout: Layout, name: str) -> datetime | None:
    """When a file came into the trash, or later: its name was the last thing of it that changed."""
    try:
        return datetime.fromtimestamp(layout.disk.stat(os.path.join(layout.folder, TRASH, name)).st_ctime, UTC)
    except FileNotFoundError:
        return None
