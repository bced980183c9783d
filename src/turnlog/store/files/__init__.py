"""Logs in files, one per session, under one home folder. The default store; no server.

The files and folders of a home are named in `turnlog.layout`, each with what it is for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from turnlog.errors import NotFound, TurnlogError
from turnlog.layout import BASES, DERIVED, ERASED, ERASING, SESSIONS, TRASH
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry
from turnlog.log.part import Fork
from turnlog.log.written import entries_of, entry_of
from turnlog.store import Clock, now_ms
from turnlog.store.capability import Repaired, Surveyed
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import Disk, disk_errors, open_locked
from turnlog.store.files.glimpse import first_id, glimpse
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.listing import FileListing
from turnlog.store.files.trash import Trash
from turnlog.store.refusal import fork_entry_missing, id_taken, session_missing

if TYPE_CHECKING:
    from turnlog.log.erasure.content import ErasingPlan, Erasure
    from turnlog.store.files.broadcast import FileBroadcast
    from turnlog.store.files.erasing import FileErasing
    from turnlog.store.files.sessionfile import SessionFile
    from turnlog.store.files.tenants import FileTenants
    from turnlog.store.tenant import DroppedTenant


def connect(location: str, *, durability: str = "fsync", clock: Clock = now_ms, disk: Disk | None = None) -> FileStore:
    """Return the store in that folder. The folder is created by the first write."""
    return FileStore(location, durable=durability == "fsync", clock=clock, disk=disk or Disk())


class FileStore:
    """See `Store`. This class creates and opens logs; blobs, listings, the trash, erasing and tenants have classes."""

    backend = "files"

    def __init__(self, folder: str, *, durable: bool, clock: Clock, disk: Disk, tenant: str = "") -> None:
        self._home = HomeFolder(folder, disk, tenant)
        self._disk = disk
        self._durable = durable
        self._clock = clock
        self.folder = self._home.folder
        self.disk = self._home.sizes

        self._blobs = blobs = FileBlobs(self._home)
        self.add, self.get, self.has, self.stream = blobs.add, blobs.get, blobs.has, blobs.stream
        self.keeping, self.collect = blobs.keeping, blobs.collect
        self.lacking, self.packs, self.doubt = blobs.lacking, blobs.packs, blobs.doubt
        self.unneeded, self.damaged_blobs, self.is_scattered = blobs.unneeded, blobs.damaged_blobs, blobs.is_scattered

        listing = FileListing(self._home, clock)
        self.listing, self.ids, self.newest = listing.listing, listing.ids, listing.newest
        self.all_logs, self.holder_of = listing.all_logs, listing.holder_of

        self._trash = Trash(self._home, blobs, clock)
        self.delete, self.restore = self._trash.delete, self._trash.restore

    def _log(self, path: str, session_id: str, *, read_only: bool = False, fd: int = -1) -> SessionFile:
        from turnlog.store.files.sessionfile import SessionFile  # loaded late: a search for a session opens none

        return SessionFile(
            self._disk, path, session_id, clock=self._clock, durable=self._durable, read_only=read_only, fd=fd,
            channel=lambda: self._broadcast,
        )  # fmt: skip

    @cached_property
    def _broadcast(self) -> FileBroadcast:
        from turnlog.store.files.broadcast import FileBroadcast  # only live text needs it

        return FileBroadcast(self._home)

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> SessionFile:
        """See `Logs.create`. The file gets its name once its whole content is on the disk."""
        return self._begin(session_id, lambda log: log.begin(drafts, seq), drafts[0].id, parent, SESSIONS)

    def _begin(
        self, session_id: str, fill: Callable[[SessionFile], None], first: str, parent: Fork | None, subfolder: str
    ) -> SessionFile:
        with disk_errors(f"creating session {session_id}"):
            self._home.make_ready()
            self._refuse_taken(session_id, first, is_live=subfolder == SESSIONS)
            path = self._home.path(subfolder, first if subfolder == BASES else session_id)
            temporary, fd = self._home.begin_file(subfolder)
            log: SessionFile | None = None
            try:
                log = self._log(temporary, session_id, fd=fd)
                fill(log)
                if parent is None:
                    self._disk.link(temporary, path)
                else:
                    self._link_beside(parent, temporary, path)
                log.moved_to(path)
                self._disk.unlock(fd)
                self._disk.discard(temporary)
            except BaseException as error:
                self._disk.discard(temporary)
                if log is not None:
                    log.close()
                else:
                    self._disk.close(fd)
                if isinstance(error, FileExistsError):
                    raise id_taken(session_id) from None
                raise
            self._disk.sync_folder(os.path.join(self._home.folder, subfolder))
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
        self._finish_erasing(session_id)
        voided = (line for line in lines if b'"void":' in line)
        if any(entry_of(item).void for line in voided for item in entries_of([line], after=0)):
            with disk_errors(f"opening {self._home.folder}"):
                self._home.prepare_for_erasures()
        if not after:
            [start, *_] = entries_of(lines, after=0)
            subfolder = SESSIONS
            if deleted:
                subfolder = BASES if self._disk.exists(self._home.path(TRASH, session_id)) else TRASH
            self._begin(session_id, lambda log: log.begin_with(lines), entry_of(start).id, parent, subfolder).close()
            return
        with disk_errors(f"opening session {session_id}"):
            path = self._base_path(session_id, first)
        if deleted or os.path.dirname(path) != os.path.join(self._home.folder, BASES):
            self._adopt_into(path, session_id, lines, after)
            return
        live = self._home.path(SESSIONS, session_id)
        self._trash.move(session_id, path, live, after=after)
        try:
            self._adopt_into(live, session_id, lines, after)
        except TurnlogError:
            with suppress(TurnlogError):  # another process has continued the session: then it stays
                self._trash.move(session_id, live, path, after=after)
            raise

    def _adopt_into(self, path: str, session_id: str, lines: list[bytes], after: int) -> None:
        log = self._log(path, session_id)
        try:
            log.adopt(lines, after=after)
        finally:
            log.close()

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        if self._has(ERASING):
            self._erasing.finish_all()
        self._trash.purge(session_id, deleted=deleted, after=after)
        if self._has(ERASING):
            self._erasing.retry_refused()

    # ── erasing ───────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _erasing(self) -> FileErasing:
        from turnlog.store.files.erasing import FileErasing  # rarely needed

        return FileErasing(self._home, self._blobs)

    def _finish_erasing(self, session_id: str) -> None:
        """Finish an erasure that a crash interrupted, before anything else is written."""
        if self._has(ERASING):
            self._erasing.refuse_unfinished(session_id)

    def _has(self, subfolder: str) -> bool:
        with disk_errors(f"looking at {self._home.folder}"):
            return self._disk.exists(os.path.join(self._home.folder, subfolder))

    def erase(self, plan: ErasingPlan) -> str:
        return self._erasing.erase(plan)

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        return self._erasing.erasures(first) if self._has(ERASED) else {}

    def unsettled(self) -> dict[str, ErasingPlan]:
        return self._erasing.unsettled() if self._has(ERASING) else {}

    def settle(self, name: str) -> None:
        self._erasing.settle(name)

    # ── finding ───────────────────────────────────────────────────────────────────────────────────

    def _refuse_taken(self, session_id: str, first: str, *, is_live: bool) -> None:
        live, deleted = self._home.path(SESSIONS, session_id), self._home.path(TRASH, session_id)
        first_ids = [first_id(self._disk, path) for path in (live, deleted) if self._disk.exists(path)]
        if (
            first in first_ids
            or self._disk.exists(self._home.path(BASES, first))
            or (is_live and self._disk.exists(live))
        ):
            raise id_taken(session_id)

    def _link_beside(self, parent: Fork, temporary: str, path: str) -> None:
        """Give a fork its name while its parent is locked against a purge and has the entry that the fork needs."""
        while True:
            base = self._base_path(parent.session, parent.base)
            held = open_locked(self._disk, base)
            if held is None:
                continue  # it was moved or purged meanwhile
            with held:
                seen = glimpse(self._disk, *os.path.split(base))
                if seen is None or seen.last is None or seen.last.seq < parent.seq:
                    raise fork_entry_missing(parent)
                self._disk.link(temporary, path)
                return

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> SessionFile:
        if not read_only:
            self._finish_erasing(session_id)
        with disk_errors(f"opening session {session_id}"):
            if read_only:
                return self._log(self._base_path(session_id, first), session_id, read_only=True)
            path = self._home.path(SESSIONS, session_id)
            if not self._disk.exists(path) or (first is not None and first_id(self._disk, path) not in (None, first)):
                raise session_missing(session_id, is_deleted=self._disk.exists(self._home.path(TRASH, session_id)))
        log = self._log(path, session_id)
        log.open()
        return log

    def _base_path(self, session_id: str, first: str | None = None) -> str:
        named = [self._home.path(subfolder, session_id) for subfolder in (SESSIONS, TRASH)]
        existing = [path for path in named if self._disk.exists(path)]
        first_ids = {path: first if first is None else first_id(self._disk, path) for path in existing}
        matching = [path for path in existing if first_ids[path] == first]
        # A log whose first line is unreadable is used only if no other matches.
        unreadable = [path for path in existing if first_ids[path] is None]
        for path in (*matching, self._home.path(BASES, first or session_id), *unreadable):
            if self._disk.exists(path):
                return path
        raise session_missing(session_id, for_fork=True)

    # ── tenants ───────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _tenants(self) -> FileTenants:
        from turnlog.store.files.tenants import FileTenants  # rarely used

        return FileTenants(self._home)

    def tenant(self, name: str, *, create: bool = True) -> FileStore:
        return self._tenant_in(self._tenants.opened(name, create=create), name)

    def _tenant_in(self, folder: str, name: str) -> FileStore:
        return FileStore(folder, durable=self._durable, clock=self._clock, disk=self._disk, tenant=name)

    def tenant_location(self, name: str) -> str:
        return self._tenants.folder(name)

    def tenants(self) -> list[str]:
        return self._tenants.names()

    def drop_tenant(self, name: str) -> DroppedTenant:
        self.tenant(name, create=False)  # refuses one of a newer version
        return self._tenants.drop(name, lambda folder: self._tenant_in(folder, name))

    # ── the whole ─────────────────────────────────────────────────────────────────────────────────

    def file_of(self, session_id: str) -> str:
        for subfolder in (SESSIONS, TRASH, BASES):
            path = self._home.path(subfolder, session_id)
            if self._disk.exists(path):
                return path
        raise NotFound(f"the file of session {session_id!r} is gone", hint="see `turnlog ls`")

    def examine(self, session_id: str, visit: Callable[[AnyEntry], None]) -> Surveyed:
        from turnlog.store.files.survey import survey_of  # only a doctor needs it

        path = self.file_of(session_id)
        survey = survey_of(self._disk, path, visit=visit)
        return Surveyed(path, survey.size_bytes, survey.entries, survey.regions)

    def repair(self, session_id: str, *, without: Collection[int]) -> Repaired | None:
        from turnlog.store.files.repair import repair

        return repair(self._home, session_id, clock=self._clock, without=frozenset(without))

    def load(self, name: str) -> bytes:
        try:
            with open(os.path.join(self.folder, DERIVED, name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def save(self, name: str, data: bytes) -> None:
        """See `CacheData.save`. Written aside and renamed, not synced: it can be made again."""
        folder = os.path.join(self.folder, DERIVED)
        with suppress(OSError):
            self._home.make_ready()
            if not self._disk.exists(folder):
                self._disk.mkdir(folder)
            self._home.write_file(os.path.join(folder, name), data, durable=False)

    def health(self) -> dict[str, Any]:
        from turnlog.store.files.health import health  # rarely used

        return health(self._home, self.backend)

    def close(self) -> None:
        """See `Logs.close`."""
