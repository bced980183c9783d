"""The store in memory: the reference for every other store, a store for tests, and the example for new stores.

`connect`, `Logs` and `Blobs` are all that a store must have; the methods at the end are optional capabilities.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from turnlog.errors import Corrupt, NotFound
from turnlog.log.draft import Draft
from turnlog.log.entry import Start, is_wide
from turnlog.log.erasure.content import ErasingPlan, Erasure
from turnlog.log.ids import word
from turnlog.log.part import Fork
from turnlog.log.payload import digest as digest_of
from turnlog.log.payload import digest_key
from turnlog.store import IMPORTED, AddBlob, Clock, Freed, Listed, OpenFile, Place, now_ms
from turnlog.store.memory.log import MemoryLog
from turnlog.store.memory.sharing import BlobLock
from turnlog.store.refusal import (
    fork_entry_missing,
    id_ambiguous,
    id_in_trash,
    id_taken,
    refuse_other_end,
    session_missing,
    tenant_missing,
)
from turnlog.store.tenant import DroppedTenant, count_contents, refuse_guest


def connect(location: str = "", *, durability: str = "fsync", clock: Clock = now_ms) -> MemoryStore:
    """Return an empty store. `location` and `durability` are ignored."""
    del location, durability
    return MemoryStore(clock)


class MemoryStore:
    """See `Store`."""

    backend = "memory"

    def __init__(self, clock: Clock, tenant: str = "") -> None:
        self._clock = clock
        self._tenant = tenant
        self._tenants: dict[str, MemoryStore] = {}
        self._is_dropped = False
        self._mutex = threading.RLock()
        self._logs: dict[str, MemoryLog] = {}
        self._trash: dict[str, MemoryLog] = {}
        self._deleted_at: dict[str, datetime] = {}
        self._bases: dict[str, MemoryLog] = {}
        self._blobs: dict[str, bytes] = {}
        self._derived: dict[str, bytes] = {}
        self._erasures: dict[str, dict[tuple[int, str], Erasure]] = {}
        self._unsettled: dict[str, ErasingPlan] = {}
        self._collected = 0
        self._blob_lock = BlobLock()

    def create(self, session_id: str, drafts: list[Draft], *, seq: int = 1, parent: Fork | None = None) -> MemoryLog:
        with self._mutex:
            log = MemoryLog(session_id, self._clock, seq)
            log.append(drafts, after=0, head=0)
            self._refuse_taken(log, parent)
            self._logs[session_id] = log
            return log

    def _refuse_dropped(self) -> None:
        if self._is_dropped:
            raise tenant_missing(self._tenant)

    def _refuse_taken(self, log: MemoryLog, parent: Fork | None, *, deleted: bool = False) -> None:
        self._refuse_dropped()
        first_ids = [logs[log.id].first for logs in (self._logs, self._trash) if log.id in logs]
        if log.first in self._bases or log.first in first_ids or (log.id in self._logs and not deleted):
            raise id_taken(log.id)
        if parent is None:
            return
        base = self.open(parent.session, read_only=True, first=parent.base)
        if base.entries[-1].seq < parent.seq:
            raise fork_entry_missing(parent)

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
        with self._mutex:
            if after:
                log = self.open(session_id, read_only=True, first=first)
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

    def open(self, session_id: str, *, read_only: bool = False, first: str | None = None) -> MemoryLog:
        with self._mutex:
            for logs in (self._logs, self._trash) if read_only else (self._logs,):
                log = logs.get(session_id)
                if log is not None and first in (None, log.first):
                    return log
            if read_only and (first or session_id) in self._bases:
                return self._bases[first or session_id]
            raise session_missing(session_id, for_fork=read_only, is_deleted=session_id in self._trash)

    def listing(self, place: Place = "live", *, ids: Collection[str] | None = None) -> Iterator[Listed]:
        with self._mutex:
            logs = list({"live": self._logs, "deleted": self._trash, "aside": self._bases}[place].values())
        for log in logs:
            if ids is None or log.id in ids:
                yield _listed(log, self._deleted_at.get(log.id) if place == "deleted" else None)

    def delete(self, session_id: str, *, after: int | None = None) -> None:
        with self._mutex:
            if session_id in self._logs:
                refuse_other_end(session_id, self._logs[session_id].entries[-1].seq, after)
            self._move(session_id, self._logs, self._trash)
            self._trash[session_id].is_gone = True
            self._deleted_at[session_id] = datetime.fromtimestamp(self._clock() / 1000, UTC)

    def restore(self, session_id: str) -> None:
        with self._mutex:
            self._move(session_id, self._trash, self._logs)
            self._logs[session_id].is_gone = False
            self._deleted_at.pop(session_id, None)

    def _move(self, session_id: str, source: dict[str, MemoryLog], target: dict[str, MemoryLog]) -> None:
        with self._mutex:
            if session_id not in source:
                raise session_missing(session_id)
            self._refuse_other(session_id, target)
            target[session_id] = source.pop(session_id)

    def _refuse_other(self, session_id: str, target: dict[str, MemoryLog]) -> None:
        if session_id in target:
            raise (id_taken if target is self._logs else id_in_trash)(session_id)

    def purge(self, session_id: str, *, deleted: bool | None = None, after: int | None = None) -> None:
        with self._mutex:
            by_deletion = {False: self._logs, True: self._trash}
            holding = [
                logs for is_deleted, logs in by_deletion.items() if deleted in (None, is_deleted) and session_id in logs
            ]
            if not holding:
                raise session_missing(session_id)
            if len(holding) > 1:
                raise id_ambiguous(session_id)
            refuse_other_end(session_id, holding[0][session_id].entries[-1].seq, after)
            log = holding[0].pop(session_id)
            log.is_gone = True
            if holding[0] is self._trash:
                self._deleted_at.pop(session_id, None)
            needed = self._needed(log.first)
            if needed:
                self._bases[log.first] = log.prefix(needed)
            while unneeded := [name for name in self._bases if not self._needed(name)]:
                del self._bases[unneeded[0]]

    def _needed(self, first: str) -> int:
        needed = 0
        for logs in (self._logs, self._trash, self._bases):
            for log in logs.values():
                start = log.entries[0]
                if isinstance(start, Start) and start.fork is not None and start.fork.base == first:
                    needed = max(needed, start.fork.seq)
        return needed

    @contextmanager
    def add(self, *, progress: Callable[[int], None] | None = None) -> Generator[AddBlob]:
        new: dict[str, bytes] = {}
        size = 0

        def add(content: bytes | OpenFile) -> str:
            nonlocal size
            data = b"".join(content.pieces()) if isinstance(content, OpenFile) else content
            name = digest_of(data)
            if name not in new and not self.has(name):
                size += len(data)
            new[name] = data
            if progress is not None:
                progress(size)
            return name

        yield add
        with self._mutex:
            self._refuse_dropped()
            self._blobs.update(new)

    def get(self, digest: str) -> bytes:
        digest_key(digest)
        with self._mutex:
            data = self._blobs.get(digest)
        if data is None:
            raise NotFound(f"no blob {digest}")
        if digest_of(data) != digest:
            raise Corrupt(f"blob {digest} is damaged")
        return data

    def has(self, digest: str) -> bool:
        digest_key(digest)
        with self._mutex:
            return digest in self._blobs

    def stream(self, digest: str) -> Iterator[bytes]:
        yield self.get(digest)

    def keeping(self) -> AbstractContextManager[None]:
        return self._blob_lock.shared()

    def collect(
        self, find: Callable[[], Container[str]], *, expected: Container[str] | None = None, strictly: bool = False
    ) -> Freed:
        """See `Blobs.collect`. Everything is removed at once, because it is quick."""
        del expected, strictly
        with self._blob_lock.exclusive():
            needed = find()
            with self._mutex:
                gone = [name for name in self._blobs if name not in needed]
                self._collected += 1
                return Freed(len(gone), sum(len(self._blobs.pop(name)) for name in gone))

    def close(self) -> None:
        """See `Logs.close`."""

    # ── beside the contract ───────────────────────────────────────────────────────────────────────

    def erase(self, plan: ErasingPlan) -> str:
        with self._mutex:
            for one in plan.logs:
                for logs in (self._logs, self._trash, self._bases):
                    for log in logs.values():
                        if log.first == one.first:
                            log.erase(one.erasures)
                erasures = self._erasures.setdefault(one.first, {})
                for erasure in one.erasures:
                    erasures.setdefault((erasure.seq, erasure.part), erasure)
            for name in [name for name in self._derived if name.startswith(IMPORTED)]:
                del self._derived[name]  # data about an import's source may hold erased text
            name = word(16)
            self._unsettled[name] = plan
            return name

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        with self._mutex:
            wanted = self._erasures if first is None else {first} & self._erasures.keys()
            return {name: list(self._erasures[name].values()) for name in wanted}

    def unsettled(self) -> dict[str, ErasingPlan]:
        with self._mutex:
            return dict(self._unsettled)

    def settle(self, name: str) -> None:
        with self._mutex:
            self._unsettled.pop(name, None)

    def lacking(self, digests: Iterable[str]) -> set[str]:
        return {name for name in digests if not self.has(name)}

    def packs(self) -> frozenset[str]:
        return frozenset({f"collected {self._collected} times"})

    def disk(self) -> dict[str, int]:
        with self._mutex:
            return {"logs": 0, "trash": 0, "blobs": sum(len(data) for data in self._blobs.values())}

    def unneeded(self, needed: Container[str]) -> Freed:
        with self._mutex:
            sizes = [len(data) for name, data in self._blobs.items() if name not in needed]
            return Freed(len(sizes), sum(sizes))

    def tenant(self, name: str, *, create: bool = True) -> MemoryStore:
        refuse_guest(self._tenant)
        with self._mutex:
            if name not in self._tenants:
                if not create:
                    raise tenant_missing(name)
                self._tenants[name] = MemoryStore(self._clock, name)
            return self._tenants[name]

    def tenant_location(self, name: str) -> str:
        """See `HoldTenants`. A tenant can only be reached through this store."""
        refuse_guest(self._tenant)
        del name
        return "memory:"

    def tenants(self) -> list[str]:
        refuse_guest(self._tenant)
        with self._mutex:
            return sorted(self._tenants)

    def drop_tenant(self, name: str) -> DroppedTenant:
        one = self.tenant(name, create=False)
        with self._mutex, one._mutex:
            dropped = count_contents(name, one)
            one._is_dropped = True
            for logs in (one._logs, one._trash, one._bases):
                for log in logs.values():
                    log.is_gone = True
                logs.clear()
            one._blobs.clear()
            self._tenants.pop(name, None)
            return dropped

    def holder_of(self, entry_id: str) -> str | None:
        with self._mutex:
            return next((name for name, log in self._logs.items() if log.find(entry_id) is not None), None)

    def load(self, name: str) -> bytes:
        return self._derived.get(name, b"")

    def save(self, name: str, data: bytes) -> None:
        self._derived[name] = data


def _listed(log: MemoryLog, deleted_at: datetime | None) -> Listed:
    start = log.entries[0]
    wide = next((e for e in reversed(log.entries) if is_wide(e)), None)
    return Listed(log.id, start if isinstance(start, Start) else None, wide, log.entries[-1], 0, deleted_at)
