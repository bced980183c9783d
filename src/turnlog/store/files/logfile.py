"""One log in one file: the append protocol, the settling of an unfinished tail, and reading.

Append: lock · is it still our file, does it end where we left it · one write · unlock · sync. A failed write is
cut back under the lock; after a failed sync nothing is acknowledged through that descriptor again. Nothing else
ever shortens a log.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from turnlog.errors import AlreadyExists, Conflict, Corrupt, NotFound, Unavailable
from turnlog.log.assemble import Oversize, backward, forward
from turnlog.log.codec import MAX_LINE, Damage, Flawed, Unreadable, decode, is_verified
from turnlog.log.draft import Draft, number, to_ms, verify
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Entry, Set, is_fence
from turnlog.store import Clock
from turnlog.store.files.disk import Disk, as_error, disk_errors
from turnlog.store.files.known import KnownIds
from turnlog.store.files.lines import header_of, last_newline, lines, lines_back, seek

_SHORTEST_LINE = 64
"""No entry takes fewer bytes: so many unreadable bytes can have held at most so many entries."""
_TRACE = 96
"""How many bytes of the end of the log we remember, to know it again."""

_open_logs: weakref.WeakSet[LogFile]


class _Span(NamedTuple):
    """Bytes we wrote and nobody has synced, and the entries in them."""

    start: int
    end: int
    seqs: dict[str, int]
    last: int


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
        self._known = KnownIds()
        self._forget()
        self._unsynced: list[_Span] = []
        self._unsure: list[_Span] = []
        self._failed: set[int] = set()
        self._old: list[int] = []
        """Descriptors given up while another thread may still be using them."""
        _open_logs.add(self)
        if fd >= 0:
            self._identity = _identity(disk.fstat(fd))

    def _forget(self) -> None:
        """What we know of the file: nothing yet."""
        self._end = -1
        """How far we have looked."""
        self._good = 0
        """Just behind the last line that counts; what lies between it and `_end` is unfinished or damaged."""
        self._last = 0
        """The last `seq` that counts."""
        self._floor = 0
        """The next `seq` is above this: also above what is damaged."""
        self._at = 0
        self._wide = 0
        self._trace = b""
        self._synced = 0

    # ── the file ──────────────────────────────────────────────────────────────────────────────────

    def _read(self, length: int, offset: int) -> bytes:
        return self._disk.pread(self._fd, length, offset)

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
        """Look at the file: settle its tail if we may write, so that everything after builds on it."""
        with self._mutex, disk_errors(f"opening the log of session {self.id}"):
            self._ensure_open()
            self._check_id()
            if self._read_only:
                self._look_at_tail(self._disk.fstat(self._fd).st_size)
                return
            self._disk.lock(self._fd)
            try:
                self._look_at_tail(self._disk.fstat(self._fd).st_size)
            except OSError:
                self._forget()  # a full disk must not keep anybody from reading; an append will settle it
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
            self._unsynced = []
            self._forget()

    def _close_all(self) -> None:
        for fd in (self._fd, *self._old):
            if fd >= 0:
                self._disk.close(fd)
        self._fd, self._old = -1, []

    def __del__(self) -> None:
        if hasattr(self, "_old"):
            self._close_all()

    def after_fork(self) -> None:
        """In a child process: a descriptor shared with the parent would share its lock, too."""
        self._mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self._known = KnownIds()
        self._unsynced, self._unsure = [], []
        self._close_all()
        self._forget()

    def begin(self, drafts: list[Draft], seq: int) -> None:
        """The first entries of a new log, synced: the file has no name yet that anybody looks for."""
        self._end = self._good = 0
        self._floor = seq - 1
        data, entries, wide = self._stamp(drafts, 0)
        self._write(data, entries)
        self._wide = wide
        self._sync(self._last)

    def prefix(self, seq: int) -> bytes:
        """The log up to that entry, to the byte, with the rest of its batch."""
        with self._mutex:
            self._ensure_open()
            end = last_newline(self._read, self._disk.fstat(self._fd).st_size)
            _, header, _ = seek(self._read, seq, end)
            last = seq if header is None else max(seq, header.seq + header.more)
            return self._read(seek(self._read, last + 1, end)[0], 0)

    # ── what we know of its end ───────────────────────────────────────────────────────────────────

    def _look_at_tail(self, size: int) -> None:
        """Learn where the log stands from its end, newest first."""
        self._forget()
        size = self._adopt(size)
        ends: dict[int, int] = {}

        def noted() -> Iterator[tuple[int, bytes]]:
            for offset, line in lines_back(self._read, last_newline(self._read, size)):
                ends[offset] = offset + (line.length if isinstance(line, Oversize) else len(line)) + 1
                yield offset, line

        hidden = 0
        for item in backward(noted()):
            if isinstance(item, Damage):
                hidden = max(hidden, item.seq or 0)
                continue
            offset, entry = item
            self._note(offset, entry)
            self._good = ends.get(offset) or min(end for end in ends.values() if end > offset)
            break
        self._end = size
        self._trace = self._read(min(_TRACE, self._good), max(0, self._good - _TRACE))
        self._raise_floor(hidden)

    def _catch_up(self, size: int) -> None:
        """Learn what others wrote since we last looked."""
        if size < self._end:
            self._look_at_tail(size)
            raise Conflict(
                f"the log of session {self.id} became shorter under this writer",
                hint="call refresh() on the session, or resume it again",
            )
        size = self._adopt(size)
        hidden = 0
        end = self._good
        for item in self._placed(self._good, last_newline(self._read, size)):
            if isinstance(item, Damage):
                hidden = max(hidden, item.seq or 0)
                continue
            end = item[2]
            self._note(item[0], item[1])
        self._good = end
        self._end = size
        self._trace = self._read(min(_TRACE, self._good), max(0, self._good - _TRACE))
        self._raise_floor(hidden)

    def _placed(self, start: int, end: int) -> Iterator[tuple[int, AnyEntry, int] | Damage]:
        """Entries with where their lines begin and end."""
        ends: dict[int, int] = {}

        def noted() -> Iterator[tuple[int, bytes]]:
            for offset, line in lines(self._read, start, end):
                ends[offset] = offset + (line.length if isinstance(line, Oversize) else len(line)) + 1
                yield offset, line

        for item in forward(noted(), last=self._last):
            if isinstance(item, Damage):
                yield item
            else:
                offset, entry = item
                yield offset, entry, ends.pop(offset, None) or min(e for e in ends.values() if e > offset)

    def _note(self, offset: int, entry: AnyEntry) -> None:
        """One more entry that counts."""
        self._last = entry.seq
        self._floor = max(self._floor, entry.seq)
        if entry.at is not None:
            self._at = max(self._at, to_ms(entry.at))
        self._wide = offset if _is_wide(entry) else max(self._wide, entry.wide)
        self._known.saw(entry.id, entry.seq)

    def _raise_floor(self, hidden: int) -> None:
        """Whatever the damaged end of the log held, its numbers are not given out again."""
        self._floor = max(self._floor, hidden)
        damaged = self._end - self._good
        if damaged > 0:
            self._floor += damaged // _SHORTEST_LINE + 1

    def _adopt(self, size: int) -> int:
        """A complete entry that only lacks its newline gets it; anything else is left to be sealed off."""
        start = last_newline(self._read, size)
        length = size - start
        if not length or length > MAX_LINE or self._read_only:
            return size
        tail = self._read(length, start)
        if not is_verified(tail):
            return size
        try:
            if isinstance(decode(tail), Flawed):
                return size
        except Unreadable:
            return size
        self._disk.write(self._fd, b"\n")
        self._unsynced.append(_Span(size, size + 1, {}, 0))
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
        try:
            with self._mutex:
                entries = self._append(drafts, after, head, once, alone)
            if durable and self._durable:
                self._sync(entries[-1].seq)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise NotFound(
                    f"session {self.id} is gone from its place",
                    hint="it was deleted or moved; see `turnlog ls`",
                ) from error
            raise as_error(error, f"appending to session {self.id}") from error
        return entries

    def _append(self, drafts: list[Draft], after: int, head: int, once: bool, alone: bool) -> list[AnyEntry]:
        self._ensure_open()
        if self._read_only:
            raise Unavailable(f"session {self.id} cannot be written", hint="check the owner and mode of its file")
        disk, fd = self._disk, self._fd
        disk.lock(fd)
        try:
            if _identity(disk.stat(self.path)) != self._identity:
                fd = self._take_new_file()
            size = disk.fstat(fd).st_size
            if self._unsure:
                size = self._cut_unsure(size)
            if self._end < 0:
                self._look_at_tail(size)
            elif size != self._end:
                self._catch_up(size)
            known = self._answer_known(drafts, once)
            if known is not None:
                return known
            if after < self._last and (alone or any(draft.is_fence for draft in drafts)):
                self._refuse_conflict(after, alone)
            data, entries, wide = self._stamp(drafts, head)
            self._write(data, entries)
            self._wide = wide
            return entries
        finally:
            if self._fd >= 0:
                disk.unlock(self._fd)

    def _stamp(self, drafts: list[Draft], head: int) -> tuple[bytes, list[AnyEntry], int]:
        """The lines of a batch, and what anybody will read from them."""
        damaged = self._end - self._good
        torn = damaged > 0 and self._read(1, self._end - 1) != b"\n"
        offset = self._end + torn
        out, entries = [b"\n"] if torn else [], list[AnyEntry]()
        wide, at = self._wide, self._at
        for draft, stamps, at in number(drafts, floor=self._floor, at=at, now=self._clock(), head=head):
            if not entries and damaged > 0:
                stamps += f',"sealed":{damaged + torn}'
            if wide:
                stamps += f',"wide":{wide}'
            repeated = self._known.doubted(draft.id)
            if repeated:
                stamps += f',"again":{repeated}'
            line = draft.line(stamps)
            entries.append(verify(line))
            out.append(line)
            if draft.is_wide:
                wide = offset
            offset += len(line)
        self._at = at
        return b"".join(out), entries, wide

    def _write(self, data: bytes, entries: list[AnyEntry]) -> None:
        start = self._end
        sealing = self._good < self._end
        try:
            self._disk.write(self._fd, data)
        except BaseException:
            self._end = -1  # until the cut below has worked, we know nothing
            self._disk.ftruncate(self._fd, start)
            raise
        self._end = self._good = start + len(data)
        self._trace = data[-_TRACE:]
        self._last = self._floor = entries[-1].seq
        seqs = {entry.id: entry.seq for entry in entries}
        self._unsynced.append(_Span(start, self._end, seqs, self._last))
        self._known.wrote(seqs)
        if sealing:
            # Whoever reads a later line must find this one: it says which bytes before it do not count.
            try:
                self._disk.sync(self._fd)
            except OSError:
                self._give_up_descriptor()
                raise

    def sync(self, seq: int) -> None:
        """See `Log.sync`."""
        if self._durable:
            try:
                self._sync(seq)
            except OSError as error:
                raise as_error(error, f"syncing session {self.id}") from error

    def _sync(self, seq: int) -> None:
        """Entry `seq` and all before it are on the disk. One sync serves every thread that waits for it.

        Locks are taken in one order, `_sync_mutex` before `_mutex`, and a sync does not keep others from writing.
        """
        with self._sync_mutex:
            with self._mutex:
                if seq in self._failed:
                    raise Unavailable(
                        f"session {self.id}: entry {seq} could not be synced and may be lost",
                        hint="append the same drafts again: an id counts once",
                    )
                if self._synced >= seq:
                    return
                if self._fd < 0:
                    raise Unavailable(f"session {self.id} was closed before entry {seq} was synced")
                fd, mark = self._fd, self._last
            try:
                self._disk.sync(fd)
            except OSError:
                with self._mutex:
                    self._give_up_descriptor()
                raise
            with self._mutex:
                self._synced = max(self._synced, mark)
                self._unsynced = [span for span in self._unsynced if span.last > mark]

    def _give_up_descriptor(self) -> None:
        """After a failed sync the kernel may call lost pages clean: start over with a fresh descriptor."""
        for span in self._unsynced:
            self._known.doubt(span.seqs)
            self._failed.update(span.seqs.values())
        self._unsure += self._unsynced
        self._unsynced = []
        self._old.append(self._fd)
        self._fd = -1
        self._forget()

    def _cut_unsure(self, size: int) -> int:
        """Cut back our own writes that failed to sync, as far as nobody has written after them."""
        while self._unsure and self._unsure[-1].end == size:
            size = self._unsure[-1].start
            self._disk.ftruncate(self._fd, size)
            self._known.cut(self._unsure.pop().seqs)
        self._unsure = []  # what others have written after stays; writing it again says `again`
        return size

    def _take_new_file(self) -> int:
        """The file was replaced: go on with the new one if it holds all we know, and refuse otherwise."""
        trace, good = self._trace, self._good
        self._disk.unlock(self._fd)
        self._old.append(self._fd)
        self._fd = -1
        self._ensure_open()
        self._disk.lock(self._fd)
        if self._disk.fstat(self._fd).st_size < good or self._read(len(trace), good - len(trace)) != trace:
            self._forget()
            raise Conflict(
                f"the file of session {self.id} was replaced by another one under this writer",
                hint="look at it with `turnlog doctor`, then resume the session again",
            )
        self._synced = 0
        return self._fd

    def _answer_known(self, drafts: list[Draft], once: bool) -> list[AnyEntry] | None:
        """What is in the log already under these ids; None if nothing is."""
        seqs = [self._known.seq_of(draft.id, self._all_ids) for draft in drafts]
        present = [draft.id for draft, seq in zip(drafts, seqs, strict=True) if seq]
        if not present:
            return None
        if once or len(present) < len(drafts):
            raise AlreadyExists(
                f"the entry id {present[0]!r} is already in session {self.id}",
                hint="use another id" if once else "some entries of this batch are there and some are not",
            )
        return [entry for seq in seqs for entry in self._entries(after=seq - 1, before=seq + 1)]

    def _all_ids(self) -> dict[str, int]:
        return {entry.id: entry.seq for entry in reversed(list(self._entries(after=0, before=None)))}

    def _entries(self, *, after: int, before: int | None) -> Iterator[AnyEntry]:
        for item in self.read(after=after, before=before):
            if isinstance(item, Entry):
                yield item

    def _refuse_conflict(self, after: int, alone: bool) -> None:
        for entry in self._entries(after=after, before=None):
            if (alone or is_fence(entry)) and not self._known.doubted(entry.id):
                raise Conflict(
                    f"entry {entry.seq} ({entry.type}, {entry.id}) of another writer came after entry {after}",
                    hint="call refresh() on the session and append again, or append with rebase=True",
                )

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """See `Log.read`. Works on what is there when it begins; never blocks a writer."""
        with self._mutex, disk_errors(f"reading session {self.id}"):
            self._ensure_open()
            fd = os.dup(self._fd)
        try:
            yield from self._read_from(fd, after, before, reverse)
        except OSError as error:
            raise as_error(error, f"reading session {self.id}") from error
        finally:
            os.close(fd)

    def _read_from(self, fd: int, after: int, before: int | None, reverse: bool) -> Iterator[AnyEntry | Damage]:
        pread = self._disk.pread

        def read(length: int, offset: int) -> bytes:
            return pread(fd, length, offset)

        size = self._disk.fstat(fd).st_size
        end = last_newline(read, size)
        if reverse:
            at_end, stop = True, end
            if before is not None:
                _, header, stop = seek(read, before, end)
                if header is not None and header.batch:
                    _, _, stop = seek(read, header.seq + header.more, end)
                at_end = stop >= end
            for item in backward(lines_back(read, stop), before=1 << 63 if before is None else before, at_end=at_end):
                if isinstance(item, Damage):
                    yield item
                elif item[1].seq > after:
                    yield item[1]
                else:
                    return
            return
        start = 0
        if after:
            start, header, _ = seek(read, after + 1, end)
            if header is not None and header.batch:
                start, _, _ = seek(read, header.seq + header.more - header.batch + 1, end)
        for item in forward(lines(read, start, end)):
            if isinstance(item, Damage):
                yield item
                continue
            entry = item[1]
            if before is not None and entry.seq >= before:
                return
            if entry.seq > after:
                yield entry
        if size > end and before is None:
            yield Damage(end, size - end, "torn")

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
            return self._last != seq or self._disk.fstat(self._fd).st_size != self._end


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_wide(entry: AnyEntry) -> bool:
    return isinstance(entry, Set) and entry.key in WIDE_FACTS


def _renew_after_fork() -> None:
    for log in list(_open_logs):
        log.after_fork()


_open_logs = weakref.WeakSet()
os.register_at_fork(after_in_child=_renew_after_fork)
