"""The blobs of the file store: packs in a folder, and the lock between writers and collections."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import ref

from turnlog.errors import NotFound, OutOfSpace
from turnlog.layout import BLOBS, BLOBS_LOCK
from turnlog.log.payload import digest_key
from turnlog.store import Freed
from turnlog.store.files.disk import Held, as_error, disk_errors
from turnlog.store.files.homefolder import HomeFolder

if TYPE_CHECKING:
    from turnlog.store.files.packs import Packs
    from turnlog.store.files.packwriter import PackWriter


class FileBlobs:
    """See `Blobs`."""

    def __init__(self, home: HomeFolder) -> None:
        self._home = home
        self._held_by_thread = threading.local()

    @cached_property
    def _packs(self) -> Packs:
        from turnlog.store.files.packs import Packs  # loaded late: most reads and listings need no blobs

        return Packs(self._home.disk, os.path.join(self._home.folder, BLOBS))

    def get(self, digest: str) -> bytes:
        return self._packs.get(digest)

    def has(self, digest: str) -> bool:
        return self._packs.has(digest)

    def stream(self, digest: str) -> Iterator[bytes]:
        return self._packs.stream(digest)

    def damaged_blobs(self) -> Iterator[str]:
        return self._packs.check()

    def add(self, *, progress: Callable[[int], None] | None = None) -> PackWriter:
        with disk_errors(f"opening {self._home.folder}"):
            self._home.make_ready()
        from turnlog.store.files.packwriter import PackWriter  # readers do not load the writing side

        return PackWriter(self._packs, progress=progress)

    def lacking(self, digests: Iterable[str]) -> set[str]:
        stored = self._packs.learn()
        missing = {name for name in digests if digest_key(name) not in stored}
        if missing:
            self._packs.refuse_newer()
        return missing

    def packs(self) -> frozenset[str]:
        with disk_errors("listing packs"):
            return frozenset(self._packs.names())

    def doubt(self) -> str:
        with disk_errors("looking at packs"):
            name = next((name for name in self._packs.names() if not self._packs.objects(name)), "")
        return name and f"nobody can say what is in pack {name}"

    def unneeded(self, needed: Container[str]) -> Freed:
        from turnlog.store.files.collect import unneeded

        with disk_errors("looking at blobs"):
            return unneeded(self._packs, needed)

    def is_scattered(self) -> bool:
        from turnlog.store.files.collect import are_many_small

        with disk_errors("looking at packs"), suppress(FileNotFoundError):  # a pack was collected meanwhile
            return are_many_small(self._packs)
        return False

    def keeping(self) -> AbstractContextManager[object]:
        exclusive = self._held_by_thread.exclusive() if hasattr(self._held_by_thread, "exclusive") else None
        if exclusive is not None and not exclusive.closed:
            return nullcontext()  # the holder of the exclusive lock would wait for itself
        return self._hold(shared=True)

    def exclusive(self) -> AbstractContextManager[object]:
        """Lock out every `keeping`, except that of this thread itself."""
        held = self._hold(shared=False)
        self._held_by_thread.exclusive = ref(held)  # a weak reference, because an interrupt may drop the lock
        return held

    def _hold(self, *, shared: bool) -> Held:
        try:
            self._home.make_ready()
            return self._home.disk.hold(os.path.join(self._home.folder, BLOBS_LOCK), shared=shared, create=True)
        except OSError as error:
            raise as_error(error, f"locking the blobs in {self._home.folder}") from error

    def collect(
        self, find: Callable[[], Container[str]], *, expected: Container[str] | None = None, strictly: bool = False
    ) -> Freed:
        """See `Blobs.collect`. Packs are rewritten in advance, concurrently with other work, as far as is known."""
        from turnlog.store.files.collect import collect, prepare

        prepared = ""
        if expected is not None:
            # Another process may collect at the same time; and the collection below frees space.
            with suppress(NotFound, OutOfSpace), disk_errors("collecting blobs"), self.keeping():
                prepared = prepare(self._packs, expected, strictly=strictly)
        with self.exclusive():
            needed = find()
            with disk_errors("collecting blobs"):
                self._home.remove_leftovers()
                return collect(self._packs, needed, prepared=prepared, strictly=strictly)
