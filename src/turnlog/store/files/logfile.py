"""The file of one log: where it ends, and how something gets behind that end and onto the disk.

Lock · is it still our file, does it end where we left it · one write · unlock · sync. A failed write is cut back
under the lock; after a failed sync nothing is acknowledged through that descriptor again. Nothing else ever
shortens a log.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from turnlog.errors import Conflict, TurnlogError, Unavailable
from turnlog.store.files.disk import Disk, Room, as_error
from turnlog.store.files.glimpse import first_id, first_id_in
from turnlog.store.files.handle import FileHandle, ReadingHandle, identity
from turnlog.store.files.known import KnownIds
from turnlog.store.files.tail import PlacedLines, Tail, is_adoptable
from turnlog.store.files.unsynced import Unsynced, UnsyncedWrite
from turnlog.store.forked import renew_after_fork

_T = TypeVar("_T")
_P = ParamSpec("_P")
_FIRST = 4 << 10
"""Enough of a log to tell it from another one of the same name."""


class LogFile:
    """A log's file for reading and, unless `read_only`, for writing. `mutex` is held by whoever uses more than `sync`.

    Locks are taken in one order: that of the syncs, `mutex`, the file's.
    """

    def __init__(self, disk: Disk, path: str, session_id: str, *, durable: bool, read_only: bool, fd: int) -> None:
        self.id = session_id
        self.handle = FileHandle(disk, path, read_only=read_only, fd=fd)
        self._disk = disk
        self._durable = durable
        self._is_named = fd >= 0
        """Whether the file's name is on the disk: whoever creates a file sees to that himself."""
        self._room = Room()
        self._begin_anew()
        renew_after_fork(self)

    def _begin_anew(self) -> None:
        self.mutex = threading.RLock()
        self._sync_mutex = threading.Lock()
        self.tail: Tail | None = None
        """None where we do not know how the log ends."""
        self.known = KnownIds()
        self._unsynced = Unsynced()

    def close(self) -> None:
        """Let go of the descriptor. The next use opens the file again."""
        with self._sync_mutex, self.mutex:
            self.handle.close()
            self.tail = None

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.handle.close()

    def after_fork(self) -> None:
        """In a child process: a descriptor shared with the parent would share its lock, too."""
        self.handle.close()
        self._begin_anew()

    # ── opening ───────────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Have a descriptor, for writing where that may be."""
        if self.handle.open():
            self._found_another()

    def _open_for_writing(self) -> None:
        if self.handle.open_for_writing():
            self._found_another()

    def _found_another(self) -> None:
        self.tail, self._is_named = None, False
        self._unsynced.replaced()

    def begin(self, tail: Tail) -> None:
        """A file that nobody else knows yet: it has no name that anybody looks for."""
        self.handle.identify()
        self.tail = tail

    def settle(self) -> None:
        """Learn how the log ends, if we may write, so that everything after builds on it."""
        if self.handle.is_writable:
            self.locked(self._try_to_look)

    def _try_to_look(self) -> None:
        try:
            self._look(self.handle.size())
        except OSError:
            self.tail = None  # a full disk must not keep anybody from reading; an append will look again

    def copy(self) -> ReadingHandle:
        """A descriptor to read from at leisure what is there now."""
        self._open_current()
        if self._unsynced.unsure:
            self._try_to_cut()
            self.open()
        return self.handle.copy()

    def _open_current(self) -> None:
        """Have a descriptor of the file that has the name now: it was written anew if something was erased in it.

        Where it was purged, another session may have the name: what is held is still the one that was opened.
        """
        handle = self.handle
        if handle.fd >= 0 and self.version() not in (None, handle.identity) and self._is_same_session():
            tail = self.tail
            handle.leave()
            self.open()
            if tail is not None and tail.is_in(handle.read, handle.size()):
                self.tail = tail
        else:
            self.open()

    def _is_same_session(self) -> bool:
        first = first_id_in(self._disk, self.handle.fd)
        return first is not None and first == first_id(self._disk, self.handle.path)

    def version(self) -> tuple[int, int] | None:
        """Which file it is that has the name; None if there is none, because it was moved."""
        try:
            return identity(self._disk.stat(self.handle.path))
        except FileNotFoundError:
            return None

    # ── the lock ──────────────────────────────────────────────────────────────────────────────────

    def locked(self, work: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
        """Do something under the writer's lock, which is free afterwards, wherever an interrupt comes up.

        An unlock can be interrupted, too, so the descriptor is left behind then. Unless we ended it ourselves, nothing
        is known of the log after.
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
                handle.leave()
                raise
            raise
        except BaseException:
            self.tail = None
            handle.leave()
            raise

    # ── where it ends ─────────────────────────────────────────────────────────────────────────────

    def end(self) -> Tail:
        """Under the lock: where the log ends by now."""
        handle = self.handle
        status = self._disk.stat(handle.path)
        while (status.st_dev, status.st_ino) != handle.identity:
            self._take_new_file()
            status = self._disk.stat(handle.path)  # it may have been replaced once more while we waited for its lock
        size = status.st_size
        if self._unsynced.unsure:
            size = self._cut_unsure(size)
        tail = self.tail
        if tail is None:
            tail = self._look(size)
        elif size != tail.end:
            self._catch_up(tail, size)
        return tail

    def _look(self, size: int) -> Tail:
        """Under the lock: learn how the log ends."""
        size = self._complete(size)
        tail = Tail()
        self.known.forget()
        tail.look(self.handle.read, size, self.known.saw)
        tail.floor = max(tail.floor, self.tail.floor if self.tail is not None else 0, self._unsynced.last_failed)
        self.tail = tail
        return tail

    def _catch_up(self, tail: Tail, size: int) -> None:
        """Under the lock: learn what others wrote since we last looked."""
        if size < tail.end:
            self._look(size)
            raise Conflict(
                f"the log of session {self.id} became shorter under this writer",
                hint="call refresh() on the session, or resume it again",
            )
        tail.catch_up(self.handle.read, self._complete(size), self.known.saw)

    def _complete(self, size: int) -> int:
        """A complete entry that only lacks its newline gets it; anything else is left to be sealed off."""
        if not is_adoptable(self.handle.read, size):
            return size
        self._disk.write(self.handle.fd, b"\n")
        return size + 1

    def _take_new_file(self) -> None:
        """The file was replaced: go on with the new one if it holds all we know, and refuse otherwise."""
        tail, first = self.tail, self._first_line()
        self.handle.leave()
        self._open_for_writing()
        self._disk.lock(self.handle.fd)
        is_same = tail.is_in(self.handle.read, self.handle.size()) if tail is not None else True
        if not is_same or self._first_line() != first:
            raise Conflict(
                f"the file of session {self.id} was replaced by another one under this writer",
                hint="look at it with `turnlog doctor`, then resume the session again",
            )
        self.tail = tail

    def _first_line(self) -> bytes:
        return self.handle.read(_FIRST, 0).partition(b"\n")[0]

    def has_grown(self, seq: int) -> bool:
        """Whether there may be entries after `seq`."""
        self._open_current()
        tail = self.tail
        return tail is None or tail.last != seq or self.handle.size() != tail.end

    # ── writing ───────────────────────────────────────────────────────────────────────────────────

    def write(self, tail: Tail, new: PlacedLines) -> None:
        """Under the lock: lines behind the end. A line that seals is on the disk when this returns."""
        if not self._is_named or tail.ends_in_batch:
            self._be_sure_of(tail)
        fd, data, start = self.handle.fd, new.data, tail.end
        end, is_sealing = start + len(data), tail.good < start
        if end > self._room.end:
            self._room.make(self._disk, fd, end)
        # Before it is there: of a write that was interrupted, too, nobody may rely on a sync that failed.
        self._unsynced.waiting.append(UnsyncedWrite(start, end, new.seqs, new.entries[-1].seq))
        try:
            self._disk.write(fd, data)
        except BaseException:
            self._cut_unfinished(start, end)
            raise
        if self._durable:
            self._disk.push(fd, start, len(data))
        tail.wrote(new)
        self.known.wrote(new.seqs)
        if is_sealing:
            # Readers of a later line need this one: it says which bytes before it do not count.
            self._sync_or_give_up()

    def _be_sure_of(self, tail: Tail) -> None:
        """Under the lock: what we are going to acknowledge depends on these, and who wrote them may have died."""
        if not self._is_named:
            folder = os.path.dirname(self.handle.path)
            self._disk.refuse_remote(folder)
            if self._durable:
                self._disk.sync_folder(folder)
            self._is_named = True
        if tail.ends_in_batch and self._durable and self._unsynced.synced < tail.last:
            # With a line behind it, a batch of which the disk has only a part would seem to have been whole.
            self._sync_or_give_up()

    def _cut_unfinished(self, start: int, end: int) -> None:
        """A write failed or was interrupted."""
        self.tail = None  # should the cut fail as well, what is there has to be looked at and sealed off
        if self.handle.size() < end:  # somebody may have read what is whole: it stays
            self._disk.ftruncate(self.handle.fd, start)
            self._unsynced.waiting.pop()

    def cut_to(self, size: int) -> Tail:
        """Under the lock: what is behind that was never acknowledged, and goes."""
        self._disk.ftruncate(self.handle.fd, size)
        return self._look(size)

    def sync_now(self, tail: Tail) -> None:
        """Under the lock: everything up to here is on the disk before anything follows it."""
        if self._durable:
            # Of one write a power cut may leave the end and not the beginning, and nobody would notice a gap.
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
        """See `Log.sync`. One serves every thread that waits for it, and keeps nobody from writing meanwhile."""
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
                    if handle.old:
                        handle.close_old()
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
                    if seq in self._unsynced.failed:  # of two syncs at once, only one is told of an error
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
        """That entry is not in the log: nobody builds on one that was taken out of it again."""
        if head <= self._unsynced.last_failed:
            raise Unavailable(
                f"session {self.id}: entry {head}, which these drafts build on, could not be synced",
                hint="it was taken out of the log again; append it once more, or go on without it",
            )

    def _give_up_descriptor(self) -> None:
        """After a failed sync the kernel may call lost pages clean: start over with a fresh descriptor."""
        self.known.doubt(self._unsynced.fail())
        self.tail = None
        self.handle.leave()
        self._try_to_cut()

    def _try_to_cut(self) -> None:
        """Take what failed to sync out of the log, so that nobody builds on it. The next append insists."""
        try:
            self.locked(self._cut_all_unsure)
        except (OSError, TurnlogError):
            return

    def _cut_all_unsure(self) -> None:
        self._cut_unsure(self.handle.size())

    def _cut_unsure(self, size: int) -> int:
        """Cut back our own writes that failed to sync, as far as nobody has written after them."""
        while write := self._unsynced.newest_unsure(size):
            self._disk.ftruncate(self.handle.fd, write.start)
            self._unsynced.unsure.pop()
            self.known.cut(write.seqs)
            self.tail, size = None, write.start
        return size
