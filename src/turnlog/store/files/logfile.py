"""One log in one file: the append protocol.

Lock · is it still our file, does it end where we left it · one write · unlock · sync. A failed write is cut back
under the lock; after a failed sync nothing is acknowledged through that descriptor again. Nothing else ever
shortens a log.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator

from turnlog.errors import AlreadyExists, Conflict, Corrupt, Unavailable
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft, number
from turnlog.log.entry import AnyEntry, Entry, is_fence
from turnlog.store import Clock
from turnlog.store.files.disk import Disk, Room, as_error, disk_errors, renew_after_fork
from turnlog.store.files.known import KnownIds
from turnlog.store.files.lines import header_of
from turnlog.store.files.reading import newest_first, oldest_first, prefix
from turnlog.store.files.tail import Tail, is_adoptable
from turnlog.store.files.unsynced import Unsynced


class LogFile:
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
        self.path = path
        self._disk = disk
        self._clock = clock
        self._durable = durable
        self._read_only = read_only
        self._mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self._fd = fd
        self._old: list[int] = []
        """Descriptors given up while another thread may still be using them."""
        self._identity = _identity(disk.fstat(fd)) if fd >= 0 else (0, 0)
        self._tail: Tail | None = None
        """None where we do not know how the log ends."""
        self._known = KnownIds()
        self._unsynced = Unsynced()
        self._room = Room()
        renew_after_fork(self)

    # ── the file ──────────────────────────────────────────────────────────────────────────────────

    def _read(self, length: int, offset: int) -> bytes:
        return self._disk.pread(self._fd, length, offset)

    def _size(self) -> int:
        return self._disk.fstat(self._fd).st_size

    def _ensure_open(self) -> None:
        if self._fd >= 0:
            return
        flags = os.O_RDONLY if self._read_only else os.O_RDWR | os.O_APPEND
        try:
            self._fd = self._disk.open(self.path, flags)
        except OSError as error:
            if self._read_only or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self._fd = self._disk.open(self.path, os.O_RDONLY)
            self._read_only = True
        self._identity = _identity(self._disk.fstat(self._fd))

    def open(self) -> None:
        """Look at the file, and settle its tail if we may write, so that everything after builds on it."""
        with self._mutex, disk_errors(f"opening the log of session {self.id}"):
            self._ensure_open()
            self._check_id()
            if self._read_only:
                return
            self._disk.lock(self._fd)
            try:
                self._look(self._size())
            except OSError:
                self._tail = None  # a full disk must not keep anybody from reading; an append will look again
            finally:
                self._disk.unlock(self._fd)

    def _check_id(self) -> None:
        line, newline, _ = self._read(1 << 16, 0).partition(b"\n")
        header = header_of(line) if newline else None
        if header is not None and header.type == "session" and header.id != self.id:
            raise Corrupt(
                f"the file of session {self.id!r} holds session {header.id!r}",
                hint=f"somebody renamed or copied {os.path.basename(self.path)}; put it back",
            )

    def close(self) -> None:
        """Let go of the descriptor. The next use opens the file again."""
        with self._sync_mutex, self._mutex:
            self._close_all()

    def _close_all(self) -> None:
        for fd in (self._fd, *self._old):
            if fd >= 0:
                self._disk.close(fd)
        self._fd, self._old = -1, []
        self._tail = None
        self._unsynced.forget()

    def __del__(self) -> None:
        if hasattr(self, "_unsynced"):
            self._close_all()

    def after_fork(self) -> None:
        """In a child process: a descriptor shared with the parent would share its lock, too."""
        self._mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self._known = KnownIds()
        self._unsynced = Unsynced()
        self._close_all()

    # ── where it ends ─────────────────────────────────────────────────────────────────────────────

    def _look(self, size: int) -> Tail:
        """Under the lock: learn how the log ends."""
        size = self._adopt(size)
        tail = Tail()
        tail.look(self._read, size, self._known.saw)
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
        tail.catch_up(self._read, self._adopt(size), self._known.saw)

    def _adopt(self, size: int) -> int:
        """A complete entry that only lacks its newline gets it; anything else is left to be sealed off."""
        if not is_adoptable(self._read, size):
            return size
        self._disk.write(self._fd, b"\n")
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
                entries = self._append(drafts, after, head, once, alone)
            except OSError as error:
                raise as_error(error, f"appending to session {self.id}") from error
        if durable:
            self.sync(entries[-1].seq)
        return entries

    def _append(self, drafts: list[Draft], after: int, head: int, once: bool, alone: bool) -> list[AnyEntry]:
        if self._fd < 0:
            self._ensure_open()
        if self._read_only:
            raise Unavailable(f"session {self.id} cannot be written", hint="check the owner and mode of its file")
        self._disk.lock(self._fd)
        try:
            status = self._disk.stat(self.path)
            size = status.st_size
            if status.st_ino != self._identity[1] or status.st_dev != self._identity[0]:
                self._take_new_file()
                size = self._size()
            if self._unsynced.unsure:
                size = self._cut_unsure(size)
            tail = self._tail
            if tail is None:
                tail = self._look(size)
            elif size != tail.end:
                self._catch_up(tail, size)
            if self._known.may_have(drafts) and (known := self._answer_known(drafts, once)):
                return known
            if after < tail.last and (alone or any(draft.is_fence for draft in drafts)):
                self._refuse_conflict(after, alone)
            return self._write(tail, drafts, head)
        finally:
            if self._fd >= 0:
                self._disk.unlock(self._fd)

    def _write(self, tail: Tail, drafts: list[Draft], head: int) -> list[AnyEntry]:
        start, sealing = tail.end, tail.damaged > 0
        torn = sealing and self._read(1, start - 1) != b"\n"
        entries: list[AnyEntry] = []
        out, wide, offset, at = [b"\n"] if torn else [], tail.wide, start + torn, tail.at
        for draft, stamps, when in number(drafts, floor=tail.floor, at=at, now=self._clock(), head=head):
            if sealing and not entries:
                stamps += f',"sealed":{tail.damaged + torn}'
            if wide:
                stamps += f',"wide":{wide}'
            again = self._known.doubted(draft.id)
            if again:
                stamps += f',"again":{again}'
            line, entry = draft.sealed(stamps)
            entries.append(entry)
            out.append(line)
            if draft.is_wide:
                wide = offset
            offset, at = offset + len(line), when
        data = out[0] if len(out) == 1 else b"".join(out)
        if offset > self._room.end:
            self._room.make(self._disk, self._fd, offset)
        self._write_or_cut(data, start)
        tail.wrote(data, entries[-1].seq, at, wide)
        seqs = {entry.id: entry.seq for entry in entries}
        self._unsynced.wrote((start, tail.end, seqs, tail.last))
        self._known.wrote(seqs)
        if sealing:
            # Whoever reads a later line must find this one: it says which bytes before it do not count.
            try:
                self._disk.sync(self._fd)
            except OSError:
                self._give_up_descriptor()
                raise
        return entries

    def _write_or_cut(self, data: bytes, start: int) -> None:
        try:
            self._disk.write(self._fd, data)
        except BaseException:
            self._tail = None  # should the cut fail as well, what is there has to be looked at and sealed off
            self._disk.ftruncate(self._fd, start)
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
                if seq in self._unsynced.failed:
                    raise Unavailable(
                        f"session {self.id}: entry {seq} could not be synced and may be lost",
                        hint="append the same drafts again: an id counts once",
                    )
                if self._unsynced.synced >= seq:
                    return
                if self._fd < 0 or self._tail is None:
                    raise Unavailable(
                        f"session {self.id} was closed before entry {seq} was synced",
                        hint="append the same drafts again: an id counts once",
                    )
                fd, mark = self._fd, self._tail.last
            try:
                self._disk.sync(fd)
            except OSError:
                with self._mutex:
                    self._give_up_descriptor()
                raise
            with self._mutex:
                self._unsynced.done(mark)

    def _give_up_descriptor(self) -> None:
        """After a failed sync the kernel may call lost pages clean: start over with a fresh descriptor."""
        self._known.doubt(self._unsynced.fail())
        self._tail = None
        self._old.append(self._fd)
        self._fd = -1

    def _cut_unsure(self, size: int) -> int:
        """Cut back our own writes that failed to sync, as far as nobody has written after them."""
        while span := self._unsynced.cut(size):
            size = span[0]
            self._disk.ftruncate(self._fd, size)
            self._known.cut(span[2])
        return size

    def _take_new_file(self) -> None:
        """The file was replaced: go on with the new one if it holds all we know, and refuse otherwise."""
        self._disk.unlock(self._fd)
        self._old.append(self._fd)
        self._fd = -1
        self._ensure_open()
        self._disk.lock(self._fd)
        self._unsynced.forget()
        if self._tail is not None and not self._tail.is_in(self._read, self._size()):
            self._tail = None
            raise Conflict(
                f"the file of session {self.id} was replaced by another one under this writer",
                hint="look at it with `turnlog doctor`, then resume the session again",
            )

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

    def begin(self, drafts: list[Draft], seq: int) -> None:
        """The first entries of a new log, synced: the file has no name yet that anybody looks for."""
        self._tail = Tail(floor=seq - 1)
        self._write(self._tail, drafts, 0)
        self._sync(self._tail.last)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """See `Log.read`. Gives what is there when it begins; never blocks a writer."""
        with self._mutex, disk_errors(f"reading session {self.id}"):
            self._ensure_open()
            fd = os.dup(self._fd)
        pread = self._disk.pread

        def read(length: int, offset: int) -> bytes:
            return pread(fd, length, offset)

        try:
            size = self._disk.fstat(fd).st_size
            way = newest_first if reverse else oldest_first
            yield from way(read, size, after=after, before=1 << 63 if before is None else before)
        except OSError as error:
            raise as_error(error, f"reading session {self.id}") from error
        finally:
            os.close(fd)

    def find(self, entry_id: str) -> AnyEntry | None:
        """See `Log.find`."""
        for item in self.read(reverse=True):
            if isinstance(item, Entry) and item.id == entry_id:
                return item
        return None

    def has_grown(self, seq: int) -> bool:
        """See `Log.has_grown`."""
        with self._mutex, disk_errors(f"looking at session {self.id}"):
            self._ensure_open()
            tail = self._tail
            return tail is None or tail.last != seq or self._size() != tail.end

    def prefix(self, seq: int) -> bytes:
        """The log up to that entry, to the byte, with the rest of its batch."""
        with self._mutex:
            self._ensure_open()
            return prefix(self._read, self._size(), seq)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
