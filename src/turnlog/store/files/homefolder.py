"""The home folder of the file store: what is where in it, and files that appear whole or not at all."""

from __future__ import annotations

import os
import time
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
from turnlog.log.ids import word
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.names import file_name, is_hashed, is_session_file
from turnlog.store.refusal import tenant_missing

_ABANDONED_S = 3600.0
"""A new file without a name is left over after this long. A writer that is slower gets an error."""
_OLD = ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "catalog.lock")
"""Earlier versions kept an index in the home, with the text of other agents' sessions in it."""


class HomeFolder:
    """One home folder. It is made when something is first written."""

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
            place = os.path.join(self.folder, name)
            if self.disk.exists(place):
                self.disk.make_private(place)

    def make_ready(self) -> None:
        """Make the folder. Every name is on the disk before anything in it is acknowledged."""
        if self.tenant and not os.path.isdir(self.folder):
            raise tenant_missing(self.tenant)  # it was dropped, and must not come back because it was still open here
        if self._is_ready:
            return
        layout = os.path.join(self.folder, HOME_FILE)
        is_new = not os.path.exists(layout)
        if not is_new and not self._is_current:
            self._check()  # a newer Turnlog may have been here since: the numbers only rise
        folders = [os.path.join(self.folder, name) for name in (SESSIONS, BLOBS, BASES, TRASH)]
        path = self.folder
        while not os.path.isdir(path):
            folders.insert(0, path)
            path = os.path.dirname(path)
        for path in folders:
            self.make_folder(path)
        self.disk.refuse_remote(self.folder)
        for name in _OLD:
            path = os.path.join(self.folder, name)
            if not is_new and os.path.isfile(path):
                self.disk.discard(path)
        if is_new:
            self._sync_above()
        if is_new or not self._is_current:
            self.write_file(layout, layout_line(ERASED_LAYOUT if self._has_erasures else LAYOUT))
        self._is_ready = True

    def know_erasures(self) -> None:
        """Raise the layout version, so that Turnlogs without erasure refuse this home."""
        self.make_ready()
        self._check()
        if not self._has_erasures:
            self.write_file(os.path.join(self.folder, HOME_FILE), layout_line(ERASED_LAYOUT))
            self._has_erasures = True
        for name in (ERASED, ERASING):
            self.make_folder(os.path.join(self.folder, name))

    def make_folder(self, path: str) -> None:
        """A folder, whose name is on the disk."""
        try:
            self.disk.mkdir(path)
        except FileExistsError:
            return
        self.disk.sync_folder(os.path.dirname(path))

    def _sync_above(self) -> None:
        """Sync the parent folders: their maker may have died before their names were on the disk."""
        path = self.folder
        while (above := os.path.dirname(path)) != path and self.disk.stat(path).st_uid == os.geteuid():
            try:
                self.disk.sync_folder(above)
            except PermissionError:
                return  # where we may not look, we made no folder
            path = above

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """A whole file at once: there is no moment at which half of it has that name."""
        temporary = self.new_name(os.path.dirname(path))
        try:
            fd = self.disk.open(temporary, os.O_WRONLY, create=True)
            try:
                self.disk.write(fd, data)
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

    def path(self, place: str, session_id: str) -> str:
        """The file of a session there."""
        path = os.path.join(self.folder, place, file_name(session_id))
        if is_hashed(session_id) and not self.disk.exists(path):
            # A listing shows this name where the line is lost that has the long id.
            hashed = os.path.join(self.folder, place, session_id)
            return hashed if self.disk.exists(hashed) else path
        return path

    def is_still(self, fd: int, path: str) -> bool:
        """Whether an open file is the one that has this name now."""
        return self.disk.exists(path) and os.path.samestat(self.disk.fstat(fd), self.disk.stat(path))

    def new_name(self, place: str) -> str:
        """A name there for a file that gets its own when it is whole."""
        return os.path.join(self.folder, place, f".new-{word(16)}")

    def names(self, place: str) -> list[str]:
        """The log files there."""
        try:
            names = self.disk.listdir(os.path.join(self.folder, place))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [name for name in names if is_session_file(name) and not (place == TRASH and self.is_back(name))]

    def is_back(self, name: str) -> bool:
        """Whether a crash interrupted its restoring or deleting: then it is a session, and not a deleted one."""
        here, there = (os.path.join(self.folder, place, name) for place in (TRASH, SESSIONS))
        return self.disk.exists(there) and self.disk.exists(here) and os.path.samefile(here, there)

    def remove_leftovers(self) -> None:
        """Remove temporary files that never got their names. Writers of blobs are locked out meanwhile."""
        for place in (BLOBS, DERIVED):
            self._remove_from(os.path.join(self.folder, place), 0)
        for place in ("", SESSIONS, TRASH, BASES, LISTENING):
            self._remove_from(os.path.join(self.folder, place), _ABANDONED_S)

    def _remove_from(self, folder: str, unchanged_s: float) -> None:
        """Remove temporary files unchanged for `unchanged_s`; 0 where the lock proves that their writers are dead."""
        for name in self.disk.listdir(folder) if self.disk.exists(folder) else []:
            path = os.path.join(folder, name)
            with suppress(FileNotFoundError):  # it got its name meanwhile
                if _is_leftover(name) and time.time() - self.disk.stat(path).st_mtime >= unchanged_s:
                    self.disk.unlink(path)

    def begin_file(self, place: str) -> tuple[str, int]:
        """A new file that gets its name when it is whole, open and locked, so that it does not count as abandoned."""
        while True:
            path, fd = self.new_name(place), -1
            try:
                fd = self.disk.open(path, os.O_RDWR | os.O_APPEND, create=True)
                self.disk.lock(fd)
                if self.is_still(fd, path):
                    return path, fd
            except FileExistsError:
                raise  # then it is not ours
            except BaseException:  # also an interrupt that came when it was just made
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
                with suppress(FileNotFoundError):  # it just got its name
                    self.disk.unlink(path)
        finally:
            self.disk.close(fd)

    def sizes(self) -> dict[str, int]:
        """How many bytes logs, deleted logs and blobs take."""
        sizes: dict[str, int] = {}
        for name, places in (("logs", (SESSIONS, BASES)), ("trash", (TRASH,)), ("blobs", (BLOBS,))):
            sizes[name] = sum(self._size_of(os.path.join(self.folder, place)) for place in places)
        return sizes

    def _size_of(self, folder: str) -> int:
        size = 0
        with disk_errors(f"looking at {folder}"):
            for name in self.disk.listdir(folder) if self.disk.exists(folder) else []:
                try:
                    size += self.disk.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue  # it went away while we looked
        return size


def _is_leftover(name: str) -> bool:
    return name.startswith(".new-") and len(name) == 21 and name[5:].isalnum()
