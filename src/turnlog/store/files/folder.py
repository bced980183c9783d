"""The home folder of the file store: its layout, its private files, and the blobs in it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

import msgspec

from turnlog.errors import Corrupt, Unsupported
from turnlog.layout import HOME_FILE, LAYOUT, LAYOUT_LINE, SESSIONS, TRASH
from turnlog.log.ids import word
from turnlog.log.payload import digest_key
from turnlog.store import Clock
from turnlog.store.files.collect import collect, forget, prepare, unneeded
from turnlog.store.files.disk import Disk, Held, as_error, disk_errors
from turnlog.store.files.names import file_name, is_hashed
from turnlog.store.files.packs import Packs
from turnlog.store.files.packwriter import PackWriter

BASES = "bases"
_BLOBS, _DERIVED = "blobs", "derived"
_ABANDONED_S = 3600.0
"""Nobody takes so long to give a new file its name; should they, they are told that it is gone."""
_OLD = ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "catalog.lock")
"""Earlier versions kept an index in the home, with the text of other agents' sessions in it."""


class Folder:
    """The half of the file store that is not about logs."""

    def __init__(self, folder: str, *, durable: bool, clock: Clock, disk: Disk) -> None:
        self.folder = os.path.abspath(folder)
        self._disk = disk
        self._durable = durable
        self._clock = clock
        self._packs = Packs(disk, os.path.join(self.folder, _BLOBS))
        self._is_ready = False
        self._is_current = False
        self._inside = threading.local()
        with disk_errors(f"opening {self.folder}"):
            self._check_layout()

    # ── the folder ────────────────────────────────────────────────────────────────────────────────

    def _check_layout(self) -> None:
        path = os.path.join(self.folder, HOME_FILE)
        try:
            fd = self._disk.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            data = self._disk.pread(fd, 1 << 16, 0)
        finally:
            self._disk.close(fd)
        try:
            layout = msgspec.json.decode(data, type=dict[str, int])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Corrupt(f"{path} is not what we wrote", hint=f"it should hold {LAYOUT}") from None
        self._is_current = layout == LAYOUT
        for part, version in layout.items():
            if version > LAYOUT.get(part, 0):
                raise Unsupported(
                    f"{self.folder} has {part} version {version}; this Turnlog knows {LAYOUT.get(part, 0)}",
                    hint="upgrade Turnlog",
                )
        for name in ("", SESSIONS, _BLOBS, BASES, TRASH, _DERIVED):
            place = os.path.join(self.folder, name)
            if self._exists(place):
                self._disk.make_private(place)

    def _make_ready(self) -> None:
        """Make the folder. Every name is on the disk before anything in it is acknowledged."""
        if self._is_ready:
            return
        layout = os.path.join(self.folder, HOME_FILE)
        is_new = not os.path.exists(layout)
        folders = [os.path.join(self.folder, name) for name in (SESSIONS, _BLOBS, BASES, TRASH)]
        path = self.folder
        while not os.path.isdir(path):
            folders.insert(0, path)
            path = os.path.dirname(path)
        for path in folders:
            try:
                self._disk.mkdir(path)
            except FileExistsError:
                continue
            self._disk.sync_folder(os.path.dirname(path))
        self._disk.refuse_remote(self.folder)
        for name in _OLD:
            path = os.path.join(self.folder, name)
            if not is_new and os.path.isfile(path):
                self._discard(path)
        if is_new:
            self._sync_above()
        if is_new or not self._is_current:
            self._write_file(layout, LAYOUT_LINE)
        self._is_ready = True

    def _sync_above(self) -> None:
        """Whoever made the folders above may have died before their names were on the disk; the layout comes last."""
        path = self.folder
        while (above := os.path.dirname(path)) != path and self._disk.stat(path).st_uid == os.geteuid():
            try:
                self._disk.sync_folder(above)
            except PermissionError:
                return  # nobody makes folders where they may not even look
            path = above

    def _write_file(self, path: str, data: bytes) -> None:
        """A whole file at once: there is no moment at which half of it has that name."""
        temporary = os.path.join(os.path.dirname(path), f".new-{word(16)}")
        try:
            fd = self._disk.open(temporary, os.O_WRONLY, create=True)
            try:
                self._disk.write(fd, data)
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
            self._disk.rename(temporary, path)
        except BaseException:
            self._discard(temporary)
            raise
        self._disk.sync_folder(os.path.dirname(path))

    def _discard(self, path: str) -> None:
        try:
            self._disk.unlink(path)
        except OSError:
            return  # it is not there, or the disk is failing: a leftover that has no session's name harms nobody

    def _path(self, place: str, session_id: str) -> str:
        path = os.path.join(self.folder, place, file_name(session_id))
        if is_hashed(session_id) and not self._exists(path):
            # A listing shows this name where the line is lost that has the long id.
            hashed = os.path.join(self.folder, place, session_id)
            return hashed if self._exists(hashed) else path
        return path

    def _exists(self, path: str) -> bool:
        try:
            self._disk.stat(path)
        except FileNotFoundError:
            return False
        return True

    # ── blobs ─────────────────────────────────────────────────────────────────────────────────────

    def put(self, blobs: dict[str, bytes]) -> None:
        """See `Store.put`."""
        with disk_errors(f"opening {self.folder}"):
            self._make_ready()
        with self.keeping():  # a pack that has no name yet is swept up otherwise
            self._packs.put(blobs)

    def get(self, digest: str) -> bytes:
        """See `Store.get`."""
        return self._packs.get(digest)

    def has(self, digest: str) -> bool:
        """See `Store.has`."""
        return self._packs.has(digest)

    def lacking(self, digests: Iterable[str]) -> set[str]:
        """See `Store.lacking`."""
        known = self._packs.learn()
        return {name for name in digests if digest_key(name) not in known}

    def damaged_blobs(self) -> Iterator[str]:
        """The digests of blobs that cannot be read back. Reads every pack."""
        return self._packs.check()

    def pack(self, *, beside: frozenset[str] | None = None) -> PackWriter:
        """See `Store.pack`."""
        with disk_errors(f"opening {self.folder}"):
            self._make_ready()
        return self._packs.writer(beside=beside)

    def packs(self) -> frozenset[str]:
        """See `Store.packs`."""
        with disk_errors("listing packs"):
            return frozenset(self._packs.names())

    def stream(self, digest: str) -> Iterator[bytes]:
        """See `Store.stream`."""
        return self._packs.stream(digest)

    def keeping(self) -> AbstractContextManager[object]:
        """See `Store.keeping`."""
        alone = getattr(self._inside, "alone", None)
        if alone is not None and not alone.closed:
            return nullcontext()  # who keeps everybody else out would wait for itself
        return self._hold_blobs(shared=True)

    def exclusively(self) -> AbstractContextManager[object]:
        """Nobody is inside `keeping`, and nobody gets there; except this thread itself."""
        self._inside.alone = held = self._hold_blobs(shared=False)
        return held

    def _hold_blobs(self, *, shared: bool) -> Held:
        try:
            self._make_ready()
            return self._disk.hold(os.path.join(self.folder, ".blobs.lock"), shared=shared, create=True)
        except OSError as error:
            raise as_error(error, f"locking the blobs in {self.folder}") from error

    def doubt(self) -> str:
        """See `Store.doubt`."""
        with disk_errors("looking at packs"):
            name = next((name for name in self._packs.names() if not self._packs.objects(name)), "")
        return name and f"nobody can say what is in pack {name}"

    def forget(self, digests: Collection[str]) -> set[str]:
        """See `Store.forget`."""
        with disk_errors("removing blobs"):
            return forget(self._packs, self._disk, os.path.join(self.folder, _BLOBS), digests) if digests else set()

    def prepare(self, needed: Container[str]) -> None:
        """See `Store.prepare`."""
        with disk_errors("collecting blobs"):
            prepare(self._packs, self._disk, os.path.join(self.folder, _BLOBS), needed)

    def collect(self, needed: Container[str]) -> dict[str, int]:
        """See `Store.collect`. The caller found out what is needed inside `exclusively`."""
        with disk_errors("collecting blobs"):
            for place in (_BLOBS, _DERIVED):
                self._remove_leftovers(os.path.join(self.folder, place))
            for place in ("", SESSIONS, TRASH, BASES):
                self._remove_leftovers(os.path.join(self.folder, place), unchanged_s=_ABANDONED_S)
            return collect(self._packs, self._disk, os.path.join(self.folder, _BLOBS), needed)

    def unneeded(self, needed: Container[str]) -> dict[str, int]:
        """See `Store.unneeded`."""
        with disk_errors("looking at blobs"):
            return unneeded(self._packs, self._disk, os.path.join(self.folder, _BLOBS), needed)

    def _remove_leftovers(self, folder: str, *, unchanged_s: float = 0) -> None:
        """What never got its name: who wrote it died, or would keep us out; or nobody has touched it for so long."""
        for name in self._disk.listdir(folder) if self._exists(folder) else []:
            path = os.path.join(folder, name)
            if _is_leftover(name) and time.time() - self._disk.stat(path).st_mtime >= unchanged_s:
                self._disk.unlink(path)

    def disk(self) -> dict[str, int]:
        """See `Store.disk`."""
        sizes: dict[str, int] = {}
        for name, places in (("logs", (SESSIONS, BASES)), ("trash", (TRASH,)), ("blobs", (_BLOBS,))):
            sizes[name] = sum(self._size_of(os.path.join(self.folder, place)) for place in places)
        return sizes

    def _size_of(self, folder: str) -> int:
        size = 0
        with disk_errors(f"looking at {folder}"):
            for name in self._disk.listdir(folder) if self._exists(folder) else []:
                try:
                    size += self._disk.stat(os.path.join(folder, name)).st_size
                except FileNotFoundError:
                    continue  # it went away while we looked
        return size

    def derived(self, name: str) -> bytes:
        """See `Store.derived`."""
        try:
            with open(os.path.join(self.folder, _DERIVED, name), "rb") as file:
                return file.read()
        except OSError:
            return b""

    def keep_derived(self, name: str, data: bytes) -> None:
        """See `Store.keep_derived`. Written aside and renamed, not synced: it can be made again."""
        folder = os.path.join(self.folder, _DERIVED)
        temporary = os.path.join(folder, f".new-{word(16)}")
        try:
            self._make_ready()
            if not self._exists(folder):
                self._disk.mkdir(folder)
            fd = self._disk.open(temporary, os.O_WRONLY, create=True)
            try:
                self._disk.write(fd, data)
            finally:
                self._disk.close(fd)
            self._disk.rename(temporary, os.path.join(folder, name))
        except BaseException as error:
            self._discard(temporary)
            if not isinstance(error, OSError):
                raise

    def own_folders(self) -> frozenset[tuple[int, int]]:
        """See `Store.own_folders`."""
        with disk_errors(f"looking at {self.folder}"):
            status = self._disk.stat(self.folder) if self._exists(self.folder) else None
        return frozenset() if status is None else frozenset({(status.st_dev, status.st_ino)})


def _is_leftover(name: str) -> bool:
    return name.startswith(".new-") and len(name) == 21 and name[5:].isalnum()
