"""The home folder of the file store: its layout, and files that are created atomically."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from turnlog.errors import Corrupt, Unsupported
from turnlog.layout import (
    BASES,
    BLOBS,
    DERIVED,
    ERASED,
    ERASED_LAYOUT,
    ERASING,
    HOME_FILE,
    LAYOUT,
    LISTENING,
    SESSIONS,
    TRASH,
    layout_line,
)
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.names import file_name, is_hashed, is_session_file, is_temporary, new_temporary_name
from turnlog.store.refusal import tenant_missing

_ABANDONED_S = 3600.0
"""A temporary file counts as abandoned after this many seconds. A slower writer gets an error."""
_OLD = ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "catalog.lock")
"""Files of earlier versions: an index in the home, with the text of other agents' sessions in it."""


class HomeFolder:
    """One home folder. It is created by the first write."""

    def __init__(self, folder: str, disk: Disk, tenant: str = "") -> None:
        self.folder = os.path.abspath(folder)
        self.tenant = tenant
        self.disk = disk
        self._is_ready = False
        self._is_current = False
        self._has_erasures = False
        with disk_errors(f"opening {self.folder}"):
            self._check()

    def _check(self) -> None:
        path = os.path.join(self.folder, HOME_FILE)
        try:
            fd = self.disk.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            data = self.disk.pread(fd, 1 << 16, 0)
        finally:
            self.disk.close(fd)
        try:
            layout = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Corrupt(f"{path} is not what we wrote", hint=f"it should hold {LAYOUT}") from None
        self._is_current = layout in (LAYOUT, ERASED_LAYOUT)
        self._has_erasures = "erasures" in layout
        for part, version in layout.items():
            supported = ERASED_LAYOUT.get(part, 0)
            if not isinstance(version, int) or version > supported:
                raise Unsupported(
                    f"{self.folder} has {part} version {version}; this Turnlog knows {supported}",
                    hint="a newer Turnlog wrote there: upgrade this one",
                )
        for name in ("", SESSIONS, BLOBS, BASES, TRASH, DERIVED, ERASED, ERASING):
            path = os.path.join(self.folder, name)
            if self.disk.exists(path):
                self.disk.make_private(path)

    def make_ready(self) -> None:
        """Create the folder. Every name is on the disk before anything in it is acknowledged."""
        if self.tenant and not self.disk.exists(self.folder):
            raise tenant_missing(self.tenant)  # it was dropped, and an open store must not create it again
        if self._is_ready:
            return
        layout = os.path.join(self.folder, HOME_FILE)
        is_new = not self.disk.exists(layout)
        if not is_new and not self._is_current:
            self._check()  # a newer Turnlog may have written since: versions only rise
        folders = [os.path.join(self.folder, name) for name in (SESSIONS, BLOBS, BASES, TRASH)]
        path = self.folder
        while not self.disk.exists(path):
            folders.insert(0, path)
            path = os.path.dirname(path)
        for path in folders:
            self.make_folder(path)
        self.disk.refuse_remote(self.folder)
        for name in _OLD:
            path = os.path.join(self.folder, name)
            if not is_new and self.disk.exists(path):
                self.disk.discard(path)
        if is_new:
            self._sync_above()
        if is_new or not self._is_current:
            self.write_file(layout, layout_line(ERASED_LAYOUT if self._has_erasures else LAYOUT))
        self._is_ready = True

    def prepare_for_erasures(self) -> None:
        """Raise the layout version, so that Turnlogs without erasure refuse this home."""
        self.make_ready()
        self._check()
        if not self._has_erasures:
            self.write_file(os.path.join(self.folder, HOME_FILE), layout_line(ERASED_LAYOUT))
            self._has_erasures = True
        for name in (ERASED, ERASING):
            self.make_folder(os.path.join(self.folder, name))

    def make_folder(self, path: str) -> None:
        """Create a folder, and sync its name."""
        try:
            self.disk.mkdir(path)
        except FileExistsError:
            return
        self.disk.sync_folder(os.path.dirname(path))

    def _sync_above(self) -> None:
        """Sync the parent folders: their creator may have died before their names were on the disk."""
        path = self.folder
        while (above := os.path.dirname(path)) != path and self.disk.stat(path).st_uid == os.geteuid():
            try:
                self.disk.sync_folder(above)
            except PermissionError:
                return  # we created no folder where we have no access
            path = above

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write a whole file atomically: no other process ever sees half of it."""
        self.write_pieces(path, (data,), durable=durable)

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, durable: bool = True) -> None:
        """Write a file that may be too large for the memory, as `write_file` does."""
        temporary = self.new_name(os.path.dirname(path))
        try:
            fd = self.disk.open(temporary, os.O_WRONLY, create=True)
            try:
                for piece in pieces:
                    self.disk.write(fd, piece)
                if durable:
                    self.disk.sync(fd)
            finally:
                self.disk.close(fd)
            self.disk.rename(temporary, path)
        except BaseException:
            self.disk.discard(temporary)
            raise
        if durable:
            self.disk.sync_folder(os.path.dirname(path))

    def path(self, subfolder: str, session_id: str) -> str:
        """Return the file of a session in that subfolder."""
        path = os.path.join(self.folder, subfolder, file_name(session_id))
        if is_hashed(session_id) and not self.disk.exists(path):
            # A listing shows this name if the line with the long id is damaged.
            hashed = os.path.join(self.folder, subfolder, session_id)
            return hashed if self.disk.exists(hashed) else path
        return path

    def is_still(self, fd: int, path: str) -> bool:
        """Whether an open file is the one that has this name now."""
        return self.disk.exists(path) and os.path.samestat(self.disk.fstat(fd), self.disk.stat(path))

    def new_name(self, subfolder: str) -> str:
        """Return a temporary name in that subfolder, for a file that is renamed when it is complete."""
        return os.path.join(self.folder, subfolder, new_temporary_name())

    def names(self, subfolder: str) -> list[str]:
        """Return the names of the log files in that subfolder."""
        try:
            names = self.disk.listdir(os.path.join(self.folder, subfolder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = [name for name in names if is_session_file(name)]
        return [name for name in names if not self.is_also_live(name)] if subfolder == TRASH else names

    def is_also_live(self, name: str) -> bool:
        """Whether a crash interrupted a delete or restore of this log: then it is a session, not a deleted one."""
        deleted, live = (os.path.join(self.folder, subfolder, name) for subfolder in (TRASH, SESSIONS))
        try:
            return os.path.samestat(self.disk.stat(live), self.disk.stat(deleted))
        except FileNotFoundError:
            return False

    def remove_leftovers(self) -> None:
        """Remove temporary files that never got their names. Writers of blobs are locked out meanwhile."""
        for subfolder in (BLOBS, DERIVED):
            self._remove_from(os.path.join(self.folder, subfolder), 0)
        for subfolder in ("", SESSIONS, TRASH, BASES, LISTENING):
            self._remove_from(os.path.join(self.folder, subfolder), _ABANDONED_S)

    def _remove_from(self, folder: str, unchanged_s: float) -> None:
        """Remove temporary files unchanged for `unchanged_s`; 0 where the lock proves that their writers are dead."""
        for name in self.disk.listdir(folder) if self.disk.exists(folder) else []:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):  # it was renamed meanwhile
                if is_temporary(name) and time.time() - self.disk.stat(path).st_mtime >= unchanged_s:
                    self.disk.unlink(path)

    def begin_file(self, subfolder: str) -> tuple[str, int]:
        """Create a temporary file, open and locked, so that it does not count as abandoned."""
        while True:
            path, fd = self.new_name(subfolder), -1
            try:
                fd = self.disk.open(path, os.O_RDWR | os.O_APPEND, create=True)
                self.disk.lock(fd)
                if self.is_still(fd, path):
                    return path, fd
            except FileExistsError:
                raise  # then it is not ours
            except BaseException:  # also an interrupt just after it was created
                if fd >= 0:
                    self.disk.close(fd)
                self.disk.discard(path)
                raise
            self.disk.close(fd)

    def remove_if_abandoned(self, path: str) -> None:
        """Remove a temporary file, if no process holds it."""
        try:
            fd = self.disk.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            if self.disk.try_lock(fd):
                with suppress(FileNotFoundError):  # it was just renamed
                    self.disk.unlink(path)
        finally:
            self.disk.close(fd)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of logs, deleted logs and blobs in bytes."""
        sizes: dict[str, int] = {}
        for name, subfolders in (("logs", (SESSIONS, BASES)), ("trash", (TRASH,)), ("blobs", (BLOBS,))):
            sizes[name] = sum(self._size_of(os.path.join(self.folder, subfolder)) for subfolder in subfolders)
        return sizes

    def _size_of(self, folder: str) -> int:
        size = 0
        with disk_errors(f"looking at {folder}"):
            for name in self.disk.listdir(folder) if self.disk.exists(folder) else []:
                try:
                    size += self.disk.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue  # it was removed meanwhile
        return size
