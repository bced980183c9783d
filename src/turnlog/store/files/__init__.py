"""Logs in files, one per session, under one home folder. The default store; no server.

home.json                versions of layout and packs
sessions/<id>.jsonl      the truth: one file per session
blobs/<digest>.pack      the truth: content-addressed
bases/<first>.jsonl      prefixes of purged sessions that forks still need, by the ids of their first entries
trash/<id>.jsonl         deleted sessions until they are purged
derived/                 what can be made again; may be deleted at any time
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from turnlog.errors import Corrupt, NotFound
from turnlog.log.draft import Draft
from turnlog.log.entry import Fork
from turnlog.log.ids import word
from turnlog.log.written import entries_of, entry_of
from turnlog.store import Clock, Listed, behind, either, in_trash, is_like, taken
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.folder import BASES, SESSIONS, TRASH, Folder
from turnlog.store.files.glimpse import first_id, glimpse
from turnlog.store.files.names import is_session_file, session_id_of
from turnlog.store.files.newest import newest_first
from turnlog.store.files.sessionfile import SessionFile

_UNKNOWN = 1 << 62


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def connect(location: str, *, durability: str = "fsync", clock: Clock = now_ms, disk: Disk | None = None) -> FileStore:
    """The store in that folder, which is made when something is first written."""
    return FileStore(location, durable=durability == "fsync", clock=clock, disk=disk or Disk())


class FileStore(Folder):
    """See `Store`."""

    backend = "files"
    portion = 64 << 20

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> SessionFile:
        """See `Store.create`. The file gets its name when all that belongs in it is on the disk."""
        return self._begin(session_id, lambda log: log.begin(drafts, seq), drafts[0].id, parent, SESSIONS)

    def _begin(
        self, session_id: str, fill: Callable[[SessionFile], None], first: str, parent: Fork | None, place: str
    ) -> SessionFile:
        with disk_errors(f"creating session {session_id}"):
            self._make_ready()
            self._refuse_taken(session_id, first, is_live=place == SESSIONS)
            path = self._path(place, first if place == BASES else session_id)
            temporary = os.path.join(self.folder, place, f".new-{word(16)}")
            log: SessionFile | None = None
            try:
                fd = self._disk.open(temporary, os.O_RDWR | os.O_APPEND, create=True)
                log = SessionFile(self._disk, temporary, session_id, clock=self._clock, durable=self._durable, fd=fd)
                fill(log)
                if parent is None:
                    self._disk.link(temporary, path)
                else:
                    self._link_beside(parent, temporary, path)
                log.named(path)
                self._discard(temporary)
            except BaseException as error:
                self._discard(temporary)
                if log is not None:
                    log.close()
                if isinstance(error, FileExistsError):
                    raise taken(session_id) from None
                raise
            self._disk.sync_folder(os.path.join(self.folder, place))
        return log

    def adopt(
        self,
        session_id: str,
        lines: list[bytes],
        *,
        after: int,
        first: str | None = None,
        parent: Fork | None = None,
        deleted: bool = False,
    ) -> None:
        """See `Store.adopt`."""
        if not after:
            [start, *_] = entries_of(lines, after=0)
            place = SESSIONS
            if deleted:
                place = BASES if self._exists(self._path(TRASH, session_id)) else TRASH
            self._begin(session_id, lambda log: log.begin_with(lines), entry_of(start).id, parent, place).close()
            return
        with disk_errors(f"opening session {session_id}"):
            path = self._base_path(session_id, first)
        if not deleted and os.path.dirname(path) == os.path.join(self.folder, BASES):
            self._move(session_id, path, self._path(SESSIONS, session_id))
            path = self._path(SESSIONS, session_id)
        log = SessionFile(self._disk, path, session_id, clock=self._clock, durable=self._durable)
        try:
            log.adopt(lines, after=after)
        finally:
            log.close()

    def _refuse_taken(self, session_id: str, first: str, *, is_live: bool) -> None:
        live, deleted = self._path(SESSIONS, session_id), self._path(TRASH, session_id)
        there = [first_id(self._disk, path) for path in (live, deleted) if self._exists(path)]
        if first in there or self._exists(self._path(BASES, first)) or (is_live and self._exists(live)):
            raise taken(session_id)

    def _link_beside(self, parent: Fork, temporary: str, path: str) -> None:
        """Give a fork its name while its parent cannot be purged, and has the entry that the fork builds on."""
        while True:
            base = self._base_path(parent.session, parent.base)
            with self._disk.hold(base) as held:
                if not self._is_still(held.fileno(), base):
                    continue  # it was moved or purged while we waited
                found = glimpse(self._disk, *os.path.split(base))
                if found is None or found.last is None or found.last.seq < parent.seq:
                    raise NotFound(f"entry {parent.seq} of session {parent.session!r} was purged meanwhile")
                self._disk.link(temporary, path)
                return

    def _is_still(self, fd: int, path: str) -> bool:
        return self._exists(path) and os.path.samestat(self._disk.fstat(fd), self._disk.stat(path))

    def open(self, session_id: str) -> SessionFile:
        """See `Store.open`."""
        path = self._path(SESSIONS, session_id)
        with disk_errors(f"opening session {session_id}"):
            if not self._exists(path):
                in_trash = self._exists(self._path(TRASH, session_id))
                raise NotFound(
                    f"no session {session_id!r}",
                    hint="it was deleted; home.restore brings it back" if in_trash else "see `turnlog ls`",
                )
        log = SessionFile(self._disk, path, session_id, clock=self._clock, durable=self._durable)
        log.open()
        return log

    def _base_path(self, session_id: str, first: str | None = None) -> str:
        named = [self._path(place, session_id) for place in (SESSIONS, TRASH)]
        there = [path for path in named if self._exists(path)]
        # Whose first line is lost may be the one, if no other is.
        begins = {path: first if first is None else first_id(self._disk, path) for path in there}
        aside = self._path(BASES, first or session_id)
        for path in (*(p for p in there if begins[p] == first), aside, *(p for p in there if begins[p] is None)):
            if self._exists(path):
                return path
        raise NotFound(f"session {session_id!r}, which a fork builds on, is gone", hint="look with `turnlog doctor`")

    def base(self, session_id: str, first: str | None = None) -> SessionFile:
        """See `Store.base`."""
        with disk_errors(f"opening session {session_id}"):
            path = self._base_path(session_id, first)
        return SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)

    def _names(self, place: str) -> list[str]:
        try:
            names = self._disk.listdir(os.path.join(self.folder, place))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [name for name in names if is_session_file(name) and not (place == TRASH and self._is_back(name))]

    def _is_back(self, name: str) -> bool:
        """Whether somebody died who was restoring or deleting it: then it is a session, and not a deleted one."""
        here, there = (os.path.join(self.folder, place, name) for place in (TRASH, SESSIONS))
        return self._exists(there) and self._exists(here) and os.path.samefile(here, there)

    def all_logs(self) -> Iterator[SessionFile]:
        """See `Store.all_logs`."""
        for place in (SESSIONS, TRASH, BASES):
            with disk_errors(f"listing the sessions in {self.folder}"):
                names = self._names(place)
            for name in names:
                path = os.path.join(self.folder, place, name)
                session_id = session_id_of(name) or name
                if place == BASES:  # which are called by their first entries
                    found = glimpse(self._disk, *os.path.split(path))
                    session_id = found.id if found is not None and found.start is not None else session_id
                yield SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)

    def ids(self, *, like: str = "", deleted: bool = False) -> Iterable[str]:
        """See `Store.ids`."""
        place = TRASH if deleted else SESSIONS
        with disk_errors(f"listing the sessions in {self.folder}"):
            for name in self._names(place):
                session_id = session_id_of(name)
                if session_id is None:
                    found = glimpse(self._disk, os.path.join(self.folder, place), name)
                    session_id = found.id if found is not None else None
                if session_id is not None and is_like(session_id, like):
                    yield session_id

    def sessions(self, *, deleted: bool = False, ids: Collection[str] | None = None) -> Iterator[Listed]:
        """See `Store.sessions`."""
        found = self._found(TRASH if deleted else SESSIONS)
        return found if ids is None else (one for one in found if one.id in ids)

    def _found(self, place: str) -> Iterator[Listed]:
        folder = os.path.join(self.folder, place)
        with disk_errors(f"listing the sessions in {folder}"):
            for name in self._names(place):
                found = glimpse(self._disk, folder, name)
                if found is not None:
                    yield found

    def newest(self, *, deleted: bool = False, after: str | None = None) -> Iterator[Listed]:
        """See `Store.newest`."""
        return behind(self._newest(TRASH if deleted else SESSIONS), after)

    def _newest(self, place: str) -> Iterator[Listed]:
        folder = os.path.join(self.folder, place)
        with disk_errors(f"listing the sessions in {folder}"):
            yield from newest_first(self._disk, folder, self._names(place))

    # ── deleting ──────────────────────────────────────────────────────────────────────────────────

    def _move(self, session_id: str, old: str, new: str) -> None:
        """A new name and then no old one: whatever is there under the new one meanwhile is not replaced."""
        with disk_errors(f"moving session {session_id} to {os.path.dirname(new)}"):
            if not self._exists(old):
                raise NotFound(f"no session {session_id!r}", hint="see `turnlog ls`")
            # Who looks through all sessions for what they need must not miss this one.
            with self.keeping(), self._disk.hold(old) as held:
                try:
                    self._disk.link(old, new)
                except FileExistsError:
                    if not self._is_still(held.fileno(), new):  # somebody died between the two
                        raise (in_trash if os.path.dirname(new).endswith(TRASH) else taken)(session_id) from None
                self._disk.sync_folder(os.path.dirname(new))
                self._disk.unlink(old)
            self._disk.sync_folder(os.path.dirname(old))

    def delete(self, session_id: str) -> None:
        """See `Store.delete`."""
        self._move(session_id, self._path(SESSIONS, session_id), self._path(TRASH, session_id))

    def restore(self, session_id: str) -> None:
        """See `Store.restore`."""
        self._move(session_id, self._path(TRASH, session_id), self._path(SESSIONS, session_id))

    def purge(self, session_id: str, *, deleted: bool | None = None) -> None:
        """See `Store.purge`. What forks need is on the disk in its new place before the old one goes."""
        with disk_errors(f"purging session {session_id}"):
            places = {False: self._path(SESSIONS, session_id), True: self._path(TRASH, session_id)}
            paths = [path for is_it, path in places.items() if deleted in (None, is_it) and self._exists(path)]
            if not paths:
                raise NotFound(f"no session {session_id!r}", hint="see `turnlog ls`")
            if len(paths) > 1 and not os.path.samestat(*map(self._disk.stat, paths)):
                raise either(session_id)
            with self.exclusively():
                for path in paths:
                    self._purge(session_id, path)
                self._drop_unneeded_bases()

    def _purge(self, session_id: str, path: str) -> None:
        with self._disk.hold(path):
            first, needed = self._needed(session_id, first_id(self._disk, path))
            if needed == _UNKNOWN:
                raise Corrupt(
                    f"a session cannot be read, so nobody knows whether it builds on {session_id!r}",
                    hint="see which with `turnlog doctor`, and repair or purge that one first",
                )
            if needed:
                log = SessionFile(self._disk, path, session_id, clock=self._clock, read_only=True)
                try:
                    self._write_file(self._path(BASES, first), log.prefix(needed))
                finally:
                    log.close()
            self._disk.unlink(path)
            self._disk.sync_folder(os.path.dirname(path))

    def _needed(self, session_id: str, first: str | None) -> tuple[str, int]:
        """What its forks call the first entry of that session, and up to which they need it; 0 if there are none."""
        name, needed = first or session_id, 0
        for place in (SESSIONS, TRASH, BASES):
            for found in self._found(place):
                if first in (None, found.first) and found.id == session_id:
                    continue
                if found.start is None:
                    return name, _UNKNOWN
                fork = found.start.fork
                if fork is not None and (fork.base == first if first else fork.session == session_id):
                    name, needed = (fork.base, fork.seq) if fork.seq > needed else (name, needed)
        return name, needed

    def _drop_unneeded_bases(self) -> None:
        dropped = True
        while dropped:
            dropped = False
            for name in self._names(BASES):
                found = glimpse(self._disk, os.path.join(self.folder, BASES), name)
                if found is not None and found.start is not None and not self._needed(found.id, found.first)[1]:
                    self._disk.unlink(os.path.join(self.folder, BASES, name))
                    dropped = True

    # ── the whole ─────────────────────────────────────────────────────────────────────────────────

    def health(self) -> dict[str, Any]:
        """See `Store.health`: whether a file can be made, written, synced and removed here."""
        report: dict[str, Any] = {"backend": self.backend, "location": self.folder, "ok": True}
        try:
            with disk_errors(f"writing to {self.folder}"):
                self._make_ready()
                self._try_writing(os.path.join(self.folder, f".new-{word(16)}"))
                report["file_system"] = self._disk.file_system(self.folder)
                report["sessions"] = len(self._names(SESSIONS))
                report["private"] = not self._disk.stat(self.folder).st_mode & 0o077
                free = os.statvfs(self.folder)
                report["free_bytes"] = free.f_bavail * free.f_frsize
        except Exception as error:  # whatever it is, it is what a monitor asked for
            report.update(ok=False, error=str(error))
        return report

    def _try_writing(self, path: str) -> None:
        try:
            fd = self._disk.open(path, os.O_WRONLY, create=True)
            try:
                self._disk.write(fd, b"health\n")
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
            self._disk.unlink(path)
        except BaseException:
            self._discard(path)
            raise

    def close(self) -> None:
        """See `Store.close`."""
