"""One log in one file: the append protocol.

Lock · is it still our file, does it end where we left it · one write · unlock · sync. A failed write is cut back
under the lock; after a failed sync nothing is acknowledged through that descriptor again. Nothing else ever
shortens a log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from turnlog.errors import AlreadyExists, Conflict, Corrupt, TurnlogError, Unavailable
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry, Entry, is_fence
from turnlog.store import Clock, Polled
from turnlog.store.files.disk import Disk, Room, as_error, disk_errors, renew_after_fork
from turnlog.store.files.handle import FileHandle, identity
from turnlog.store.files.known import KnownIds
from turnlog.store.files.lines import Read, session_in
from turnlog.store.files.reading import newest_first, oldest_first
from turnlog.store.files.tail import Tail, is_adoptable
from turnlog.store.files.unsynced import Unsynced

_T = TypeVar("_T")


class LogFile(Polled):
    """A log for reading and, unless `read_only`, for writing."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        session_id: str,
        *,
        clock: Clock,
        durable: bool = True,
        read_only: bool = False,
        fd: int = -1,
    ) -> None:
        self.id = session_id
        self._disk = disk
        self._clock = clock
        self._durable = durable
        self._file = FileHandle(disk, path, read_only=read_only, fd=fd)
        self._is_named = fd >= 0
        """Whether the file's name is on the disk: whoever creates a file sees to that himself."""
        self._room = Room()
        self._begin_anew()
        renew_after_fork(self)

    def _begin_anew(self) -> None:
        self._mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self._tail: Tail | None = None
        """None where we do not know how the log ends."""
        self._known = KnownIds()
        self._unsynced = Unsynced()

    # ── the file ──────────────────────────────────────────────────────────────────────────────────

    def named(self, path: str) -> None:
        """The file was given another name."""
        self._file.path = path

    def _open(self, *, for_writing: bool = False) -> None:
        if self._file.open_for_writing() if for_writing else self._file.open():
            self._tail, self._is_named = None, False
            self._unsynced.replaced()

    def open(self) -> None:
        """Look at the file, and settle its tail if we may write, so that everything after builds on it."""
        with self._mutex, disk_errors(f"opening the log of session {self.id}"):
            self._open()
            self._check_id()
            if self._file.is_writable:
                self._alone(self._try_to_look)

    def _try_to_look(self) -> None:
        try:
            self._look(self._file.size())
        except OSError:
            self._tail = None  # a full disk must not keep anybody from reading; an append will look again

    def _check_id(self) -> None:
        line, newline, _ = self._file.read(1 << 16, 0).partition(b"\n")
        held = session_in(line) if newline else None
        if held not in (None, self.id):
            raise Corrupt(
                f"the file of session {self.id!r} holds session {held!r}",
                hint=f"somebody renamed or copied {os.path.basename(self._file.path)}; put it back",
            )

    def close(self) -> None:
        """Let go of the descriptor. The next use opens the file again."""
        with self._sync_mutex, self._mutex:
            self._file.close()
            self._tail = None

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def after_fork(self) -> None:
        """In a child process: a descriptor shared with the parent would share its lock, too."""
        self._file.close()
        self._begin_anew()

    def _alone(self, work: Callable[[], _T]) -> _T:
        """Do something under the writer's lock. Unless we ended it ourselves, nothing is known of the log after."""
        try:
            return self._file.alone(work)
        except TurnlogError:
            raise
        except BaseException:
            self._tail = None
            raise

    # ── where it ends ─────────────────────────────────────────────────────────────────────────────

    def _look(self, size: int) -> Tail:
        """Under the lock: learn how the log ends."""
        size = self._adopt(size)
        tail = Tail()
        self._known.forget()
        tail.look(self._file.read, size, self._known.saw)
        tail.floor = max(tail.floor, self._tail.floor if self._tail is not None else 0, self._unsynced.last_failed)
        self._tail = tail
        return tail

    def _catch_up(self, tail: Tail, size: int) -> None:
        """Under the lock: learn what others wrote since we last looked."""
        if size < tail.end:
            self._look(size)
            raise Conflict(
                f"the log of session {self.id} became shorter under this writer",
                hint="call refresh() on the session, or resume it again",
            )
        tail.catch_up(self._file.read, self._adopt(size), self._known.saw)

    def _adopt(self, size: int) -> int:
        """A complete entry that only lacks its newline gets it; anything else is left to be sealed off."""
        if not is_adoptable(self._file.read, size):
            return size
        self._disk.write(self._file.fd, b"\n")
        return size + 1

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    def append(
        self,
        drafts: list[Draft],
        *,
        after: int,
        head: int,
        once: bool = False,
        alone: bool = False,
        durable: bool = True,
    ) -> list[AnyEntry]:
        """See `Log.append`."""
        with self._mutex:
            try:
                self._open(for_writing=True)
                entries = self._alone(lambda: self._append(drafts, after, head, once, alone))
            except OSError as error:
                raise as_error(error, f"appending to session {self.id}") from error
        if durable:
            self.sync(entries[-1].seq)
        return entries

    def _append(self, drafts: list[Draft], after: int, head: int, once: bool, alone: bool) -> list[AnyEntry]:
        """Under the lock."""
        tail = self._end()
        if self._known.may_have(drafts) and (known := self._answer_known(drafts, once)):
            return known
        if after < tail.last and (alone or any(draft.is_fence for draft in drafts)):
            self._refuse_conflict(after, alone)
        if tail.last < head <= self._unsynced.last_failed:
            raise Unavailable(
                f"session {self.id}: entry {head}, which these drafts build on, could not be synced",
                hint="it was taken out of the log again; append it once more, or go on without it",
            )
        self._be_sure_of(tail)
        return self._write(tail, drafts, head)

    def _end(self) -> Tail:
        """Under the lock: where the log ends by now."""
        status = self._disk.stat(self._file.path)
        size = status.st_size
        if identity(status) != self._file.identity:
            self._take_new_file()
            size = self._file.size()
        if self._unsynced.unsure:
            size = self._cut_unsure(size)
        tail = self._tail
        if tail is None:
            tail = self._look(size)
        elif size != tail.end:
            self._catch_up(tail, size)
        return tail

    def _be_sure_of(self, tail: Tail) -> None:
        """Under the lock: what we are going to acknowledge depends on these, and who wrote them may have died."""
        if not self._is_named:
            folder = os.path.dirname(self._file.path)
            self._disk.refuse_remote(folder)
            if self._durable:
                self._disk.sync_folder(folder)
            self._is_named = True
        if tail.ends_in_batch and self._durable and self._unsynced.synced < tail.last:
            # With a line behind it, a batch of which the disk has only a part would seem to have been whole.
            self._sync_or_give_up()

    def _sync_or_give_up(self) -> None:
        try:
            self._disk.sync(self._file.fd)
        except OSError:
            self._give_up_descriptor()
            raise

    def _write(self, tail: Tail, drafts: list[Draft], head: int) -> list[AnyEntry]:
        read, doubted = self._file.read, self._known.doubted
        stamped = tail.stamp(read, drafts, head=head, now=self._clock(), doubted=doubted)
        self._put(tail, *stamped, is_batch=len(drafts) > 1)
        return stamped[1]

    def _put(self, tail: Tail, data: bytes, entries: list[AnyEntry], at: int, wide: int, *, is_batch: bool) -> None:
        start, sealing = tail.end, tail.damaged > 0
        if start + len(data) > self._room.end:
            self._room.make(self._disk, self._file.fd, start + len(data))
        seqs = {entry.id: entry.seq for entry in entries}
        # Before it is there: of a write that was interrupted, too, nobody may rely on a sync that failed.
        self._unsynced.wrote((start, start + len(data), seqs, entries[-1].seq))
        self._write_or_cut(data, start)
        if self._durable:
            self._disk.push(self._file.fd, start, len(data))
        tail.wrote(data, entries[-1].seq, at, wide, is_batch=is_batch)
        self._known.wrote(seqs)
        if sealing:
            # Whoever reads a later line must find this one: it says which bytes before it do not count.
            self._sync_or_give_up()

    def _write_or_cut(self, data: bytes, start: int) -> None:
        try:
            self._disk.write(self._file.fd, data)
        except BaseException:
            self._tail = None  # should the cut fail as well, what is there has to be looked at and sealed off
            if self._file.size() < start + len(data):  # somebody may have read what is whole: it stays
                self._disk.ftruncate(self._file.fd, start)
                self._unsynced.cut()
            raise

    def sync(self, seq: int) -> None:
        """See `Log.sync`."""
        if not self._durable:
            return
        try:
            self._sync(seq)
        except OSError as error:
            raise as_error(error, f"syncing session {self.id}") from error

    def _sync(self, seq: int) -> None:
        """One sync serves every thread that waits for it, and keeps nobody from writing meanwhile.

        Locks are taken in one order: `_sync_mutex` before `_mutex`.
        """
        with self._sync_mutex:
            with self._mutex:
                self._refuse_failed(seq)
                if self._unsynced.synced >= seq:
                    return
                self._open()
                self._file.close_old()
                fd = self._file.fd
                mark = seq if self._tail is None else max(seq, self._tail.last)
            try:
                self._disk.sync(fd)
            except OSError:
                with self._mutex:
                    if fd == self._file.fd:
                        self._give_up_descriptor()
                raise
            with self._mutex:
                self._refuse_failed(seq)  # of two syncs at once, only one is told of an error
                if fd == self._file.fd:
                    self._unsynced.done(mark)

    def _refuse_failed(self, seq: int) -> None:
        if seq in self._unsynced.failed:
            raise Unavailable(
                f"session {self.id}: entry {seq} could not be synced and may be lost",
                hint="append the same drafts again: an id counts once",
            )

    def _give_up_descriptor(self) -> None:
        """After a failed sync the kernel may call lost pages clean: start over with a fresh descriptor."""
        self._known.doubt(self._unsynced.fail())
        self._tail = None
        self._file.leave()
        self._try_to_cut()

    def _try_to_cut(self) -> None:
        """Take what failed to sync out of the log, so that nobody builds on it. The next append insists."""
        try:
            self._open(for_writing=True)
            self._alone(lambda: self._cut_unsure(self._file.size()))
        except (OSError, TurnlogError):
            return

    def _cut_unsure(self, size: int) -> int:
        """Cut back our own writes that failed to sync, as far as nobody has written after them."""
        while span := self._unsynced.newest_unsure(size):
            self._disk.ftruncate(self._file.fd, span[0])
            self._unsynced.unsure.pop()
            self._known.cut(span[2])
            self._tail, size = None, span[0]
        return size

    def _take_new_file(self) -> None:
        """The file was replaced: go on with the new one if it holds all we know, and refuse otherwise."""
        tail = self._tail
        self._file.leave()
        self._open(for_writing=True)
        self._disk.lock(self._file.fd)
        if tail is not None and not tail.is_in(self._file.read, self._file.size()):
            raise Conflict(
                f"the file of session {self.id} was replaced by another one under this writer",
                hint="look at it with `turnlog doctor`, then resume the session again",
            )
        self._tail = tail

    def _answer_known(self, drafts: list[Draft], once: bool) -> list[AnyEntry]:
        """What is in the log already under these ids."""
        seqs = [self._known.seq_of(draft.id, self._all_ids) for draft in drafts]
        present = [draft.id for draft, seq in zip(drafts, seqs, strict=True) if seq]
        if not present:
            return []
        if once or len(present) < len(drafts):
            raise AlreadyExists(
                f"the entry id {present[0]!r} is already in session {self.id}",
                hint="use another id" if once else "some entries of this batch are there and some are not",
            )
        return [entry for seq in seqs for entry in self._entries(after=seq - 1, before=seq + 1)]

    def _all_ids(self) -> dict[str, int]:
        ids: dict[str, int] = {}
        for entry in self._entries():
            ids.setdefault(entry.id, entry.seq)
        return ids

    def _entries(self, *, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
        for item in self.read(after=after, before=before):
            if isinstance(item, Entry):
                yield item

    def _refuse_conflict(self, after: int, alone: bool) -> None:
        for entry in self._entries(after=after):
            if (alone or is_fence(entry)) and not self._known.doubted(entry.id):
                raise Conflict(
                    f"entry {entry.seq} ({entry.type}, {entry.id}) of another writer came after entry {after}",
                    hint="call refresh() on the session and append again, or append with rebase=True",
                )

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """See `Log.read`. Gives what is there when it begins; never blocks a writer."""
        limit = 1 << 63 if before is None else before
        way = newest_first if reverse else oldest_first
        return self._read(lambda read, size: way(read, size, after=after, before=limit))

    def _read(self, way: Callable[[Read, int], Iterator[_T]]) -> Iterator[_T]:
        with self._mutex, disk_errors(f"reading session {self.id}"):
            self._open()
            if self._unsynced.unsure:
                self._try_to_cut()
                self._open()
            copy = self._file.copy()
        with copy:
            try:
                yield from way(copy.read_at, self._disk.fstat(copy.fileno()).st_size)
            except OSError as error:
                raise as_error(error, f"reading session {self.id}") from error

    def find(self, entry_id: str) -> AnyEntry | None:
        """See `Log.find`."""
        return next((item for item in self.read(reverse=True) if isinstance(item, Entry) and item.id == entry_id), None)

    def has_grown(self, seq: int) -> bool:
        """See `Log.has_grown`."""
        with self._mutex, disk_errors(f"looking at session {self.id}"):
            self._open()
            tail = self._tail
            return tail is None or tail.last != seq or self._file.size() != tail.end
