"""The log of one session in one file: conflicts, repeated ids, appending and reading."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from turnlog.errors import Corrupt, TurnlogError
from turnlog.log.codec import Damage
from turnlog.log.draft import Draft
from turnlog.log.entry import AnyEntry, Entry, is_fence
from turnlog.log.written import WrittenLine, entries_of, entry_of
from turnlog.store import Clock, in_order
from turnlog.store.files.adopting import adopt, placed
from turnlog.store.files.disk import Disk, as_error, disk_errors
from turnlog.store.files.handle import identity
from turnlog.store.files.lines import Read, session_in
from turnlog.store.files.logfile import LogFile
from turnlog.store.files.reading import newest_first, oldest_first, prefix, written_after
from turnlog.store.files.tail import Tail
from turnlog.store.refusal import came_after, entry_id_taken

if TYPE_CHECKING:
    from turnlog.store.broadcast import LiveText
    from turnlog.store.files.broadcast import FileBroadcast, PipeInbox

_T = TypeVar("_T")


class SessionFile:
    """See `Log`."""

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
        channel: Callable[[], FileBroadcast] | None = None,
    ) -> None:
        self.id = session_id
        self._channel = channel
        self._disk = disk
        self._clock = clock
        self._file = LogFile(disk, path, session_id, durable=durable, read_only=read_only, fd=fd)

    # ── the file ──────────────────────────────────────────────────────────────────────────────────

    def begin(self, drafts: list[Draft], seq: int) -> None:
        """Write the first entries of a new log, and sync."""
        tail, head = Tail(floor=seq - 1), 0
        self._file.begin(tail, drafts[0].id)
        for draft in drafts:  # no batch: the file is there as a whole, or not at all
            new = tail.place(self._file.handle.read, [draft], head=head, now=self._clock(), doubted={})
            self._file.write(tail, new)
            head = tail.last if draft.is_node else head
        self._file.sync(tail.last)

    def begin_with(self, lines: list[bytes]) -> None:
        """Write the first lines of a new log from another copy of it, and sync."""
        entries = [entry_of(item) for item in entries_of(lines, after=0)]
        tail = Tail()
        self._file.begin(tail, entries[0].id)
        self._file.write(tail, placed(tail, self._file.handle.read, lines, entries))
        self._file.sync(tail.last)

    def moved_to(self, path: str) -> None:
        """Record that the file has a new name."""
        self._file.handle.path = path

    def open(self) -> None:
        """Open and check the file; read the end of the log if it is writable."""
        with self._file.mutex, disk_errors(f"opening the log of session {self.id}"):
            self._file.open()
            self._check_id()
            self._file.read_tail()

    def _check_id(self) -> None:
        handle = self._file.handle
        line, newline, _ = handle.read(1 << 16, 0).partition(b"\n")
        held = session_in(line) if newline else None
        if held not in (None, self.id):
            raise Corrupt(
                f"the file of session {self.id!r} holds session {held!r}",
                hint=f"somebody renamed or copied {os.path.basename(handle.path)}; put it back",
            )

    def close(self) -> None:
        self._file.close()

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    def append(
        self, drafts: list[Draft], *, after: int, head: int, once: bool = False, alone: bool = False
    ) -> list[AnyEntry]:
        file = self._file
        with file.mutex:
            try:
                return file.locked(self._append, drafts, after, head, once, alone)
            except OSError as error:
                raise as_error(error, f"appending to session {self.id}") from error

    def _append(self, drafts: list[Draft], after: int, head: int, once: bool, alone: bool) -> list[AnyEntry]:
        """Under the lock."""
        file = self._file
        tail = file.current_tail()
        present = self._present(drafts, once) if file.known.may_have(drafts, alone=alone) else {}
        new = [draft for draft in drafts if draft.id not in present] if present else drafts
        if not new:
            return in_order(drafts, present, [])
        if after < tail.last and (alone or any(draft.is_fence for draft in new)):
            self._refuse_conflict(after, alone)
        if tail.last < head:
            file.refuse_lost(head)
        placed = tail.place(file.handle.read, new, head=head, now=self._clock(), doubted=file.known.doubted)
        file.write(tail, placed)
        return in_order(drafts, present, placed.entries) if present else placed.entries

    def vouch(self, ids: frozenset[str]) -> None:
        """See `VouchIds`."""
        self._file.known.vouched = ids

    def _present(self, drafts: list[Draft], once: bool) -> dict[str, AnyEntry]:
        """Return the entries that are already in the log under the drafts' ids."""
        seqs = {draft.id: self._file.known.seq_of(draft.id, self._all_ids) for draft in drafts}
        existing = {entry_id: seq for entry_id, seq in seqs.items() if seq}
        if existing and once:
            raise entry_id_taken(self.id, next(iter(existing)))
        entries = [entry for seq in existing.values() for entry in self._entries(after=seq - 1, before=seq + 1)]
        if len(entries) < len(existing):
            raise Corrupt(
                f"session {self.id} has these entries already, but they cannot be read any more",
                hint="look with `turnlog doctor`",
            )
        return dict(zip(existing, entries, strict=True))

    def find(self, entry_id: str) -> AnyEntry | None:
        """See `FindEntry`. A writable log caches all ids after one scan; a read-only one scans each time."""
        with self._file.mutex:
            try:
                self._file.open()
                seq = self._file.locked(self._seq_of, entry_id) if self._file.handle.is_writable else -1
            except (OSError, TurnlogError):
                seq = -1  # the file was moved, but can still be read
        if seq >= 0:
            return next(self._entries(after=seq - 1, before=seq + 1), None) if seq else None
        return next((one for one in self.read(reverse=True) if isinstance(one, Entry) and one.id == entry_id), None)

    def _seq_of(self, entry_id: str) -> int:
        """Under the lock."""
        self._file.current_tail()
        return self._file.known.seq_of(entry_id, self._all_ids)

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
            if (alone or is_fence(entry)) and entry.id not in self._file.known.doubted:
                raise came_after(after, entry)

    def adopt(self, lines: list[bytes], *, after: int) -> None:
        """See `Logs.adopt`. The rest of an interrupted adoption is sealed off, as after any write."""
        entries = [entry_of(item) for item in entries_of(lines, after=after)]
        with self._file.mutex:
            try:
                self._file.locked(adopt, self._file, lines, entries, after)
            except OSError as error:
                raise as_error(error, f"appending to session {self.id}") from error
        self._file.sync(entries[-1].seq)

    def sync(self, seq: int) -> None:
        self._file.sync(seq)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(self, *, after: int = 0, before: int | None = None, reverse: bool = False) -> Iterator[AnyEntry | Damage]:
        """See `Log.read`. Yields what is in the log when the read begins; never blocks a writer."""
        limit = 1 << 63 if before is None else before
        scan = newest_first if reverse else oldest_first
        return self._read(lambda read, size: scan(read, size, after=after, before=limit))

    def lines(self, *, after: int = 0) -> Iterator[WrittenLine | Damage]:
        return self._read(lambda read, size: written_after(read, size, after))

    def _read(self, scan: Callable[[Read, int], Iterator[_T]]) -> Iterator[_T]:
        with self._file.mutex, disk_errors(f"reading session {self.id}"):
            copy = self._file.copy()
        with copy:
            try:
                yield from scan(copy.read_at, self._disk.fstat(copy.fileno()).st_size)
            except OSError as error:
                raise as_error(error, f"reading session {self.id}") from error

    def prefix(self, seq: int) -> Iterator[bytes]:
        """Yield the bytes of the log up to that entry, with the rest of its batch."""
        return self._read(lambda read, size: prefix(read, size, seq))

    def wait(self, seq: int, *, seconds: float = 0) -> bool:
        """See `Log.wait`. There are no notifications."""
        if seconds:
            time.sleep(seconds)
        with self._file.mutex, disk_errors(f"looking at session {self.id}"):
            return self._file.has_grown(seq)

    def publish(self, text: LiveText) -> Callable[[], None]:
        assert self._channel is not None
        return self._channel().publish(self.id, text)

    def open_inbox(self) -> PipeInbox | None:
        assert self._channel is not None
        return self._channel().open_inbox(self.id)

    def version(self) -> object:
        with disk_errors(f"looking at session {self.id}"):
            return self._file.version()

    def stamp(self) -> object:
        with disk_errors(f"looking at session {self.id}"):
            status = self._disk.stat(self._file.handle.path)
        return (*identity(status), status.st_size, status.st_mtime_ns)
