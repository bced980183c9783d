"""Logs in memory: the reference that every other store has to agree with, and a store for tests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from turnlog.errors import Corrupt, NotFound
from turnlog.log.draft import Draft
from turnlog.log.entry import Fork, Start, is_wide
from turnlog.log.payload import digest as digest_of
from turnlog.log.payload import digest_key
from turnlog.store import Clock, Listed, behind, either, in_trash, is_like, taken
from turnlog.store.memory.log import MemoryLog
from turnlog.store.memory.sharing import BlobLock


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def connect(location: str = "", *, durability: str = "fsync", clock: Clock = now_ms) -> MemoryStore:
    """An empty store. `location` and `durability` mean nothing here."""
    del location, durability
    return MemoryStore(clock)


class MemoryStore:
    """See `Store`."""

    backend = "memory"
    portion = 64 << 20

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._mutex = threading.RLock()
        self._logs: dict[str, MemoryLog] = {}
        self._trash: dict[str, MemoryLog] = {}
        self._bases: dict[str, MemoryLog] = {}
        self._blobs: dict[str, bytes] = {}
        self._derived: dict[str, bytes] = {}
        self._collected = 0
        self._sharing = BlobLock()

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> MemoryLog:
        """See `Store.create`."""
        with self._mutex:
            log = MemoryLog(session_id, self._clock, seq)
            log.append(drafts, after=0, head=0)
            self._refuse_taken(log, parent)
            self._logs[session_id] = log
            return log

    def _refuse_taken(self, log: MemoryLog, parent: Fork | None, *, deleted: bool = False) -> None:
        there = [place[log.id].first for place in (self._logs, self._trash) if log.id in place]
        if log.first in self._bases or log.first in there or (log.id in self._logs and not deleted):
            raise taken(log.id)
        if parent is not None:
            self.base(parent.session, parent.base)

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
        with self._mutex:
            if after:
                log = self.base(session_id, first)
                is_again = not deleted and self._bases.get(log.first) is log
                if is_again:
                    self._refuse_other(session_id, self._logs)
                log.adopt(lines, after=after)
                if is_again:
                    self._logs[session_id] = self._bases.pop(log.first)
                    log.is_gone = False
                return
            log = MemoryLog(session_id, self._clock, 1)
            log.adopt(lines, after=0)
            self._refuse_taken(log, parent, deleted=deleted)
            log.is_gone = deleted
            if deleted and session_id in self._trash:
                self._bases[log.first] = log
            else:
                (self._trash if deleted else self._logs)[session_id] = log

    def open(self, session_id: str) -> MemoryLog:
        """See `Store.open`."""
        with self._mutex:
            if session_id not in self._logs:
                deleted = session_id in self._trash
                raise NotFound(
                    f"no session {session_id!r}",
                    hint="it was deleted; home.restore brings it back" if deleted else "see `turnlog ls`",
                )
            return self._logs[session_id]

    def base(self, session_id: str, first: str | None = None) -> MemoryLog:
        """See `Store.base`."""
        with self._mutex:
            for place in (self._logs, self._trash):
                log = place.get(session_id)
                if log is not None and first in (None, log.first):
                    return log
            if (first or session_id) in self._bases:
                return self._bases[first or session_id]
        raise NotFound(f"session {session_id!r}, which a fork builds on, is gone")

    def all_logs(self) -> Iterator[MemoryLog]:
        """See `Store.all_logs`."""
        with self._mutex:
            logs = [log for place in (self._logs, self._trash, self._bases) for log in place.values()]
        return iter(logs)

    def ids(self, *, like: str = "", deleted: bool = False) -> Iterable[str]:
        """See `Store.ids`."""
        with self._mutex:
            return [name for name in (self._trash if deleted else self._logs) if is_like(name, like)]

    def sessions(self, *, deleted: bool = False, ids: Collection[str] | None = None) -> Iterator[Listed]:
        """See `Store.sessions`."""
        with self._mutex:
            logs = list((self._trash if deleted else self._logs).values())
        for log in logs:
            if ids is None or log.id in ids:
                yield _found(log)

    def newest(self, *, deleted: bool = False, after: str | None = None) -> Iterator[Listed]:
        """See `Store.newest`."""
        found = sorted(self.sessions(deleted=deleted), key=lambda found: found.order, reverse=True)
        return behind(iter(found), after)

    def delete(self, session_id: str) -> None:
        """See `Store.delete`."""
        self._move(session_id, self._logs, self._trash)
        self._trash[session_id].is_gone = True

    def restore(self, session_id: str) -> None:
        """See `Store.restore`."""
        self._move(session_id, self._trash, self._logs)
        self._logs[session_id].is_gone = False

    def _move(self, session_id: str, source: dict[str, MemoryLog], target: dict[str, MemoryLog]) -> None:
        with self._mutex:
            if session_id not in source:
                raise NotFound(f"no session {session_id!r}", hint="see `turnlog ls`")
            self._refuse_other(session_id, target)
            target[session_id] = source.pop(session_id)

    def _refuse_other(self, session_id: str, target: dict[str, MemoryLog]) -> None:
        if session_id in target:
            raise (taken if target is self._logs else in_trash)(session_id)

    def purge(self, session_id: str, *, deleted: bool | None = None) -> None:
        """See `Store.purge`."""
        with self._mutex:
            places = {False: self._logs, True: self._trash}
            found = [
                place for is_deleted, place in places.items() if deleted in (None, is_deleted) and session_id in place
            ]
            if not found:
                raise NotFound(f"no session {session_id!r}", hint="see `turnlog ls`")
            if len(found) > 1:
                raise either(session_id)
            log = found[0].pop(session_id)
            log.is_gone = True
            needed = self._needed(log.first)
            if needed:
                self._bases[log.first] = log.beginning(needed)
            while unneeded := [name for name in self._bases if not self._needed(name)]:
                del self._bases[unneeded[0]]

    def _needed(self, first: str) -> int:
        needed = 0
        for place in (self._logs, self._trash, self._bases):
            for log in place.values():
                start = log.entries[0]
                if isinstance(start, Start) and start.fork is not None and start.fork.base == first:
                    needed = max(needed, start.fork.seq)
        return needed

    def put(self, blobs: dict[str, bytes]) -> None:
        """See `Store.put`."""
        for name in blobs:
            digest_key(name)
        with self._mutex:
            self._blobs.update(blobs)

    def get(self, digest: str) -> bytes:
        """See `Store.get`."""
        digest_key(digest)
        with self._mutex:
            data = self._blobs.get(digest)
        if data is None:
            raise NotFound(f"no blob {digest}")
        if digest_of(data) != digest:
            raise Corrupt(f"blob {digest} is damaged")
        return data

    def has(self, digest: str) -> bool:
        """See `Store.has`."""
        digest_key(digest)
        with self._mutex:
            return digest in self._blobs

    def lacking(self, digests: Iterable[str]) -> set[str]:
        """See `Store.lacking`."""
        return {name for name in digests if not self.has(name)}

    def pack(self, *, beside: frozenset[str] | None = None) -> MemoryPack:
        """See `Store.pack`."""
        return MemoryPack(self)

    def packs(self) -> frozenset[str]:
        """See `Store.packs`."""
        return frozenset({f"collected {self._collected} times"})

    def stream(self, digest: str) -> Iterator[bytes]:
        """See `Store.stream`."""
        yield self.get(digest)

    def keeping(self) -> AbstractContextManager[None]:
        """See `Store.keeping`."""
        return self._sharing.together()

    def exclusively(self) -> AbstractContextManager[None]:
        """See `Store.exclusively`."""
        return self._sharing.alone()

    def disk(self) -> dict[str, int]:
        """See `Store.disk`."""
        return {"logs": 0, "trash": 0, "blobs": sum(len(data) for data in self._blobs.values())}

    def doubt(self) -> str:
        """See `Store.doubt`."""
        return ""

    def forget(self, digests: Collection[str]) -> set[str]:
        """See `Store.forget`."""
        with self._mutex:
            self._collected += 1
            for name in digests:
                self._blobs.pop(name, None)
        return set()

    def prepare(self, needed: Container[str]) -> None:
        """See `Store.prepare`: nothing here takes long."""

    def collect(self, needed: Container[str]) -> dict[str, int]:
        """See `Store.collect`."""
        with self._mutex:
            gone = [name for name in self._blobs if name not in needed]
            self._collected += 1
            freed = sum(len(self._blobs.pop(name)) for name in gone)
            return {"blobs": len(gone), "bytes": freed}

    def unneeded(self, needed: Container[str]) -> dict[str, int]:
        """See `Store.unneeded`."""
        with self._mutex:
            sizes = [len(data) for name, data in self._blobs.items() if name not in needed]
            return {"blobs": len(sizes), "bytes": sum(sizes)}

    def derived(self, name: str) -> bytes:
        """See `Store.derived`."""
        return self._derived.get(name, b"")

    def keep_derived(self, name: str, data: bytes) -> None:
        """See `Store.keep_derived`."""
        self._derived[name] = data

    def own_folders(self) -> frozenset[tuple[int, int]]:
        """See `Store.own_folders`."""
        return frozenset()

    def health(self) -> dict[str, Any]:
        """See `Store.health`."""
        return {"backend": self.backend, "location": "memory:", "ok": True, "sessions": len(self._logs)}

    def close(self) -> None:
        """See `Store.close`."""


def _found(log: MemoryLog) -> Listed:
    start = log.entries[0]
    wide = next((e for e in reversed(log.entries) if is_wide(e)), None)
    return Listed(log.id, start if isinstance(start, Start) else None, wide, log.entries[-1], 0)


class MemoryPack:
    """See `Pack`."""

    name = ""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._blobs: dict[str, bytes] = {}

    def __enter__(self) -> MemoryPack:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._store.put(self._blobs)

    def add(self, data: bytes) -> str:
        """See `Pack.add`."""
        name = digest_of(data)
        self._blobs[name] = data
        return name

    def add_file(self, fd: int, size: int) -> str:
        """See `Pack.add_file`."""
        pieces: list[bytes] = []
        while size > 0 and (piece := os.read(fd, min(size, 1 << 20))):
            pieces.append(piece)
            size -= len(piece)
        return self.add(b"".join(pieces))

    def has(self, digest: str) -> bool:
        """See `Pack.has`."""
        return digest in self._blobs or self._store.has(digest)

    @property
    def size_bytes(self) -> int:
        """See `Pack.size_bytes`."""
        return sum(len(data) for name, data in self._blobs.items() if not self._store.has(name))
