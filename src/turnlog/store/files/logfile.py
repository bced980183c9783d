"""The file of one log: its end, appends, and syncs to the disk.

An append: lock, check that it is the same file and how it ends, one write, unlock, sync. A failed write is truncated
under the lock. After a failed sync, nothing is acknowledged through that descriptor again, and what it wrote is
truncated if no other writer appended after it. Nothing else shortens a log, except `cut_to` for a transfer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from turnlog.errors import Conflict, TurnlogError, Unavailable
from turnlog.store.files.disk import Disk, as_error
from turnlog.store.files.glimpse import first_id, first_id_in
from turnlog.store.files.handle import FileHandle, ReadingHandle, identity
from turnlog.store.files.known import KnownIds
from turnlog.store.files.tail import PlacedLines, Tail, is_adoptable
from turnlog.store.files.unsynced import Unsynced, UnsyncedWrite
from turnlog.store.forked import renew_after_fork
from turnlog.store.refusal import session_replaced

_T = TypeVar("_T")
_P = ParamSpec("_P")


class LogFile:
    """A log's file for reading and, unless `read_only`, for writing. Callers of anything but `sync` hold `mutex`.

    Locks are always taken in this order: `_sync_mutex`, `mutex`, the lock of the file.
    """

    def __init__(self, disk: Disk, path: str, session_id: str, *, durable: bool, read_only: bool, fd: int) -> None:
        self.id = session_id
        self.handle = FileHandle(disk, path, read_only=read_only, fd=fd)
        self._disk = disk
        self._durable = durable
        self._is_named = fd >= 0
        """Whether the file's name is known to be on the disk: the creator of a file ensures that itself."""
        self._first: str | None = None
        """The id of the first entry; None if it is unknown. Another session under the same name has another."""
        self._begin_anew()
        renew_after_fork(self)

    def _begin_anew(self) -> None:
        self.mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self.tail: Tail | None = None
        """The end of the log; None if it is unknown."""
        self.known = KnownIds()
        self._unsynced = Unsynced()

    def close(self) -> None:
        """Close the descriptor. The next use opens the file again."""
        with self._sync_mutex, self.mutex:
            self.handle.close()
            self.tail = None

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.handle.close()

    def after_fork(self) -> None:
        """Close the descriptor in a child process: a descriptor shared with the parent would share its lock, too."""
        self.handle.close()
        self._begin_anew()

    # ── opening ───────────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Open the file if it is not open: for writing, if that is allowed."""
        if self.handle.fd < 0:
            self._opened(is_other_file=self.handle.open())

    def _open_for_writing(self) -> None:
        self._opened(is_other_file=self.handle.open_for_writing())

    def _opened(self, *, is_other_file: bool) -> None:
        """Take over what was opened. Raises `NotFound`, every time, if it holds another session."""
        first = first_id_in(self._disk, self.handle.fd) if is_other_file or self._first is None else self._first
        if is_other_file:
            if self._is_of_another(first):
                self.handle.reject()
                raise session_replaced(self.id)
            self.tail, self._is_named = None, False
            self._unsynced.replaced()
        self._first = self._first or first
        if self.handle.abandoned and not self._sync_mutex.locked():
            self.handle.close_abandoned()  # only `sync` uses a descriptor without `mutex`, and none is under way

    def _is_of_another(self, first: str | None) -> bool:
        """Whether a log that begins with entry `first` is another one; not if that cannot be told."""
        return None not in (first, self._first) and first != self._first

    def begin(self, tail: Tail, first: str) -> None:
        """Begin a new file, which no other process knows yet, because it has only a temporary name."""
        self.handle.identify()
        self.tail, self._first = tail, first

    def read_tail(self) -> None:
        """Read the end of the log, if it is writable, so that later operations build on it."""
        if self.handle.is_writable:
            self.locked(self._try_to_read_tail)

    def _try_to_read_tail(self) -> None:
        try:
            self._read_tail(self.handle.size())
        except OSError:
            self.tail = None  # a full disk must not prevent reading; an append will try again

    def copy(self) -> ReadingHandle:
        """Return a second descriptor, from which the current content can be read independently."""
        self._open_current()
        if self._unsynced.unsure:
            self._try_to_cut()
            self.open()
        return self.handle.copy()

    def _open_current(self) -> None:
        """Open the file that has the name now: an erasure replaces the file.

        After a purge, another session may have the name: then the file that was opened is kept.
        """
        handle = self.handle
        if handle.fd >= 0 and self.version() not in (None, handle.identity) and self._is_same_session():
            tail = self.tail
            handle.abandon()
            self.open()
            if tail is not None and tail.is_in(handle.read, handle.size()):
                self.tail = tail
        else:
            self.open()

    def _is_same_session(self) -> bool:
        first = first_id_in(self._disk, self.handle.fd)
        return first is not None and first == first_id(self._disk, self.handle.path)

    def version(self) -> tuple[int, int] | None:
        """Return the identity of the file that has the name; None if there is none, because it was moved."""
        try:
            return identity(self._disk.stat(self.handle.path))
        except FileNotFoundError:
            return None

    # ── the lock ──────────────────────────────────────────────────────────────────────────────────

    def locked(self, work: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
        """Run `work` under the writer's lock, which is released afterwards, wherever an interrupt occurs.

        An unlock can be interrupted too; then the descriptor is abandoned. After any exception but our own errors, the
        end of the log is unknown.
        """
        handle = self.handle
        try:
            if handle.fd < 0 or not handle.is_writable:
                self._open_for_writing()
            self._disk.lock(handle.fd)
            result = work(*args, **options)
            self._disk.unlock(handle.fd)
            return result
        except (TurnlogError, OSError) as error:
            try:
                if isinstance(error, OSError):
                    self.tail = None
                if handle.fd >= 0:
                    self._disk.unlock(handle.fd)
            except BaseException:
                self.tail = None
                handle.abandon()
                raise
            raise
        except BaseException:
            self.tail = None
            handle.abandon()
            raise

    # ── where it ends ─────────────────────────────────────────────────────────────────────────────

    def current_tail(self) -> Tail:
        """Under the lock: return the current end of the log, of the file that has its name now.

        Lines that other writers appended are read. Own lines that failed to sync are cut off.
        """
        handle = self.handle
        status = self._disk.stat(handle.path)
        while (status.st_dev, status.st_ino) != handle.identity:
            if self._is_of_another(first_id(self._disk, handle.path)):
                raise session_replaced(self.id)
            self._take_new_file()
            status = self._disk.stat(handle.path)  # it may have been replaced again while we waited for its lock
        size = status.st_size
        if self._unsynced.unsure:
            size = self._cut_unsure(size)
        tail = self.tail
        if tail is None:
            tail = self._read_tail(size)
        elif size != tail.end:
            self._catch_up(tail, size)
        return tail

    def _read_tail(self, size: int) -> Tail:
        """Under the lock: read the end of the log."""
        size = self._complete(size)
        tail = Tail()
        self.known.invalidate_scan()
        tail.read_end(self.handle.read, size, self.known.record_read)
        tail.floor = max(tail.floor, self.tail.floor if self.tail is not None else 0, self._unsynced.last_failed)
        self.tail = tail
        return tail

    def _catch_up(self, tail: Tail, size: int) -> None:
        """Under the lock: read what other writers appended after this tail."""
        if size < tail.end:
            self._read_tail(size)
            raise Conflict(
                f"the log of session {self.id} became shorter under this writer",
                hint="call refresh() on the session, or resume it again",
            )
        tail.catch_up(self.handle.read, self._complete(size), self.known.record_read)

    def _complete(self, size: int) -> int:
        """Add the newline to a complete entry that lacks only that. Any other unfinished tail is sealed off later."""
        if not is_adoptable(self.handle.read, size):
            return size
        self._disk.write(self.handle.fd, b"\n")
        return size + 1

    def _take_new_file(self) -> None:
        """Continue with the file that replaced ours.

        Raises `Conflict` if it lacks what we know of the log, and `NotFound` if it holds another session.
        """
        tail = self.tail
        self.handle.abandon()
        self._open_for_writing()
        self._disk.lock(self.handle.fd)
        if tail is not None and not tail.is_in(self.handle.read, self.handle.size()):
            raise Conflict(
                f"the file of session {self.id} was replaced by another one under this writer",
                hint="look at it with `turnlog doctor`, then resume the session again",
            )
        self.tail = tail

    def has_grown(self, seq: int) -> bool:
        """Whether there may be entries after `seq`."""
        self._open_current()
        tail = self.tail
        return tail is None or tail.last != seq or self.handle.size() != tail.end

    # ── writing ───────────────────────────────────────────────────────────────────────────────────

    def write(self, tail: Tail, new: PlacedLines) -> None:
        """Under the lock: append lines. A line with `sealed` is on the disk when this returns."""
        if not self._is_named or tail.ends_in_batch:
            self._sync_before_append(tail)
        fd, data, start = self.handle.fd, new.data, tail.end
        end, is_sealing = start + len(data), tail.good < start
        # Recorded before the write: an interrupted write, too, is unsure after a failed sync.
        self._unsynced.waiting.append(UnsyncedWrite(start, end, new.seqs, new.entries[-1].seq))
        try:
            self._disk.write(fd, data)
        except BaseException:
            self._cut_unfinished(start, end)
            raise
        if self._durable:
            self._disk.push(fd, start, len(data))
        tail.record_written(new)
        self.known.record_written(new.seqs)
        if is_sealing:
            # Readers of a later line need this one: it says which bytes before it do not count.
            self._sync_or_give_up()

    def _sync_before_append(self, tail: Tail) -> None:
        """Under the lock: sync the file's name and a batch at its end. New entries depend on both."""
        if not self._is_named:
            folder = os.path.dirname(self.handle.path)
            self._disk.refuse_remote(folder)
            if self._durable:
                self._disk.sync_folder(folder)
            self._is_named = True
        if tail.ends_in_batch and self._durable and self._unsynced.synced < tail.last:
            # With a line after it, a batch that is only partly on the disk would seem to have been complete.
            self._sync_or_give_up()

    def _cut_unfinished(self, start: int, end: int) -> None:
        """Remove the bytes of a write that failed or was interrupted."""
        self.tail = None  # if truncating fails too, the end is read again and sealed off
        if self.handle.size() < end:  # a complete write stays, because a reader may have seen it
            self._disk.ftruncate(self.handle.fd, start)
            self._unsynced.waiting.pop()

    def cut_to(self, size: int) -> Tail:
        """Under the lock: truncate the file to `size`. The bytes after that were never acknowledged."""
        self._disk.ftruncate(self.handle.fd, size)
        return self._read_tail(size)

    def sync_now(self, tail: Tail) -> None:
        """Under the lock: sync everything up to the end before anything is appended."""
        if self._durable:
            # A power failure may keep the end of a write without its beginning, and no reader would notice the gap.
            self._sync_or_give_up()
            self._unsynced.done(tail.last)

    def _sync_or_give_up(self) -> None:
        try:
            self._disk.sync(self.handle.fd)
        except OSError:
            self._give_up_descriptor()
            raise

    # ── syncing ───────────────────────────────────────────────────────────────────────────────────

    def sync(self, seq: int) -> None:
        """See `Log.sync`. One sync serves every thread that waits for it, and does not block writers."""
        if not self._durable:
            return
        handle = self.handle
        try:
            with self._sync_mutex:
                with self.mutex:
                    if seq in self._unsynced.failed:
                        raise self._failed(seq)
                    if self._unsynced.synced >= seq:
                        return
                    if handle.fd < 0:
                        self.open()
                    if handle.abandoned:
                        handle.close_abandoned()
                    fd = handle.fd
                    mark = seq if self.tail is None else max(seq, self.tail.last)
                try:
                    self._disk.sync(fd)
                except OSError:
                    with self.mutex:
                        if fd == handle.fd:
                            self._give_up_descriptor()
                    raise
                with self.mutex:
                    if seq in self._unsynced.failed:  # of two concurrent syncs, only one gets the error
                        raise self._failed(seq)
                    if fd == handle.fd:
                        self._unsynced.done(mark)
        except OSError as error:
            raise as_error(error, f"syncing session {self.id}") from error

    def _failed(self, seq: int) -> Unavailable:
        return Unavailable(
            f"session {self.id}: entry {seq} could not be synced and may be lost",
            hint="append the same drafts again: an id counts once",
        )

    def refuse_lost(self, head: int) -> None:
        """Raise `Unavailable` if entry `head` was removed after a failed sync: no entry may build on it."""
        if head <= self._unsynced.last_failed:
            raise Unavailable(
                f"session {self.id}: entry {head}, which these drafts build on, could not be synced",
                hint="it was taken out of the log again; append it once more, or go on without it",
            )

    def _give_up_descriptor(self) -> None:
        """After a failed sync the kernel may mark lost pages as clean: start over with a new descriptor."""
        self.known.doubt(self._unsynced.fail())
        self.tail = None
        self.handle.abandon()
        self._try_to_cut()

    def _try_to_cut(self) -> None:
        """Try to truncate what failed to sync, so that no entry builds on it. The next append tries again."""
        try:
            self.locked(self._cut_all_unsure)
        except (OSError, TurnlogError):
            return

    def _cut_all_unsure(self) -> None:
        self._cut_unsure(self.handle.size())

    def _cut_unsure(self, size: int) -> int:
        """Truncate our own writes that failed to sync, as far as no other writer has appended after them."""
        while write := self._unsynced.newest_unsure(size):
            self._disk.ftruncate(self.handle.fd, write.start)
            self._unsynced.unsure.pop()
            self.known.cut(write.seqs)
            self.tail, size = None, write.start
        return size
