"""Erasing in files: write an intent, rewrite every affected file, record the erasure, remove the intent.

A log keeps its length and its offsets, and is replaced in one step: a concurrent reader still reads the old content.
After a crash the intent remains, and the next writer completes it.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from turnlog.errors import Corrupt
from turnlog.layout import BASES, DERIVED, ERASED, ERASING, SESSIONS, TRASH
from turnlog.log.codec import Damage, Unreadable, decode
from turnlog.log.erasure.content import ErasedLog, ErasingPlan, Erasure
from turnlog.log.erasure.line import Eraser
from turnlog.log.ids import word
from turnlog.log.written import entry_of, placed_lines
from turnlog.store import IMPORTED
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import Disk, disk_errors, open_locked
from turnlog.store.files.glimpse import first_id
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.lines import Read, last_newline, lines, pieces, reader_of
from turnlog.store.files.names import file_name
from turnlog.store.files.tail import is_adoptable

_SUFFIX = ".json"
_decode_plan = msgspec.json.Decoder(ErasingPlan).decode
_encode = msgspec.json.Encoder().encode
Changes = list[tuple[int, bytes]]
"""Offsets in a file, ascending, and the bytes that replace as many bytes there. None overlaps another."""


class FileErasing:
    """See `EraseEntries`."""

    def __init__(self, home: HomeFolder, blobs: FileBlobs) -> None:
        self._home = home
        self._disk = home.disk
        self._blobs = blobs
        self._applied: set[str] = set()
        """Plans whose lines were erased by this object."""
        self._refused: dict[str, Corrupt] = {}
        """Plans that cannot be completed as long as a log of theirs is damaged, and why."""

    def _in(self, *names: str) -> str:
        return os.path.join(self._home.folder, *names)

    def erase(self, plan: ErasingPlan) -> str:
        """See `EraseEntries.erase`. Nothing is erased until the intent is on the disk; after that, everything is."""
        name = word(16)
        with disk_errors(f"erasing in {self._home.folder}"), self._blobs.exclusive():
            self._home.prepare_for_erasures()
            for log in plan.logs:
                for path in self._paths(log):
                    _rehearse(self._disk, path, log.erasures)
            self._home.write_file(self._in(ERASING, name + _SUFFIX), _encode(plan))
            self._apply(plan)
            self._applied.add(name)
        return name

    def unsettled(self) -> dict[str, ErasingPlan]:
        """See `EraseEntries.unsettled`. Interrupted erasures are completed first."""
        self._finish()
        return {name: plan for name, plan in self._plans().items() if name in self._applied}

    def refuse_unfinished(self, session_id: str) -> None:
        """Complete interrupted erasures. Raises `Corrupt` if one in this session cannot be completed."""
        self._finish()
        for name, error in self._refused.items():
            if (plan := self._plans().get(name)) and session_id in {log.session for log in plan.logs}:
                raise Corrupt(
                    f"an erasure in session {session_id} cannot be completed: {error.message}", hint=error.hint
                )

    def purged(self) -> None:
        """Try again to complete interrupted erasures: what prevented one may have been purged."""
        self._refused.clear()

    def _finish(self) -> None:
        """Complete every interrupted erasure that can be completed."""
        if self._plans().keys() - self._applied - self._refused.keys():
            with disk_errors(f"erasing in {self._home.folder}"), self._blobs.exclusive():
                for name, plan in self._plans().items():
                    if name not in self._applied and name not in self._refused:
                        try:
                            self._apply(plan)
                        except Corrupt as error:
                            self._refused[name] = error
                        else:
                            self._applied.add(name)

    def _plans(self) -> dict[str, ErasingPlan]:
        with disk_errors(f"looking at {self._home.folder}"):
            plans: dict[str, ErasingPlan] = {}
            for name in self._names(ERASING):
                with suppress(FileNotFoundError):  # another process finished it meanwhile
                    plans[name.removesuffix(_SUFFIX)] = self._plan(self._in(ERASING, name))
            return plans

    def _plan(self, path: str) -> ErasingPlan:
        try:
            return _decode_plan(self._read(path))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Corrupt(f"{path} is not what we wrote", hint="restore it from a backup") from None

    def settle(self, name: str) -> None:
        with disk_errors(f"erasing in {self._home.folder}"):
            with suppress(FileNotFoundError):
                self._disk.unlink(self._in(ERASING, name + _SUFFIX))
            self._disk.sync_folder(self._in(ERASING))

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        with disk_errors(f"looking at {self._home.folder}"):
            if first is not None:
                path = self._in(ERASED, file_name(first) + _SUFFIX)
                return {first: self._known(path)[1]} if self._disk.exists(path) else {}
            return dict(self._known(self._in(ERASED, name)) for name in self._names(ERASED))

    # ── one erasure ───────────────────────────────────────────────────────────────────────────────

    def _apply(self, plan: ErasingPlan) -> None:
        """Rewrite the files of a plan. The caller has locked out moves, purges, collections and other erasures."""
        for log in plan.logs:
            self._finish_move(log.session)
            for path in self._paths(log):
                rewrite(self._disk, self._home, path, log.erasures)
            self._remember(log)
        self._remove_abandoned()

    def _finish_move(self, session: str) -> None:
        """Complete a move after a crash between linking the new name and removing the old one."""
        deleted = self._home.path(TRASH, session)
        if self._disk.exists(deleted) and self._home.is_also_live(os.path.basename(deleted)):
            self._disk.unlink(deleted)
            self._disk.sync_folder(self._in(TRASH))

    def _paths(self, log: ErasedLog) -> Iterator[str]:
        """Yield every file that has lines of that log."""
        for subfolder in (SESSIONS, TRASH):
            path = self._home.path(subfolder, log.session)
            if self._disk.exists(path) and first_id(self._disk, path) in (None, log.first):
                yield path
        if self._disk.exists(aside := self._home.path(BASES, log.first)):
            yield aside
        before = file_name(log.session) + ".before-repair-"
        with suppress(FileNotFoundError):
            yield from (
                self._in(TRASH, name) for name in self._disk.listdir(self._in(TRASH)) if name.startswith(before)
            )

    def _remember(self, log: ErasedLog) -> None:
        path = self._in(ERASED, file_name(log.first) + _SUFFIX)
        earlier = self._known(path)[1] if self._disk.exists(path) else []
        recorded = {(one.seq, one.part) for one in earlier}
        new = [one for one in log.erasures if (one.seq, one.part) not in recorded]
        if new:
            record = ErasedLog(log.session, log.first, earlier + new)
            self._home.write_file(path, _encode(record))

    def _known(self, path: str) -> tuple[str, list[Erasure]]:
        try:
            record = msgspec.json.decode(self._read(path), type=ErasedLog)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Corrupt(f"{path} is not what we wrote", hint="restore it from a backup") from None
        return record.first, record.erasures

    def _remove_abandoned(self) -> None:
        """Remove abandoned temporary files, which may hold erased content."""
        for subfolder in (SESSIONS, TRASH, BASES):
            for name in self._disk.listdir(self._in(subfolder)):
                if name.startswith(".new-"):
                    self._home.remove_if_abandoned(self._in(subfolder, name))
        derived = self._in(DERIVED)
        for name in self._disk.listdir(derived) if self._disk.exists(derived) else []:
            if name.startswith((IMPORTED, ".new-")):  # data about an import's source may hold erased text
                self._disk.discard(os.path.join(derived, name))

    def _names(self, subfolder: str) -> list[str]:
        try:
            return [name for name in self._disk.listdir(self._in(subfolder)) if name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return []

    def _read(self, path: str) -> bytes:
        fd = self._disk.open(path, os.O_RDONLY)
        try:
            return self._disk.pread(fd, self._disk.fstat(fd).st_size, 0)
        finally:
            self._disk.close(fd)


# ── one file ──────────────────────────────────────────────────────────────────────────────────────


def _rehearse(disk: Disk, path: str, erasures: list[Erasure]) -> None:
    """Raise `Corrupt` if `rewrite` would: before the intent is written, nothing has to be completed."""
    held = open_locked(disk, path)
    if held is None:
        return  # it was purged meanwhile
    with held:
        read, size = reader_of(disk, held.fileno()), disk.fstat(held.fileno()).st_size
        if changes := _changes(read, size, erasures):
            _compare(path, read, size, _changed_reader(read, changes), size)


def rewrite(disk: Disk, home: HomeFolder, path: str, erasures: list[Erasure]) -> None:
    """Under the writer's lock: replace a file with one that lacks the erased content."""
    held = open_locked(disk, path)
    if held is None:
        return  # it was purged meanwhile
    with held:
        read, size = reader_of(disk, held.fileno()), disk.fstat(held.fileno()).st_size
        changes = _changes(read, size, erasures)
        if not changes:
            return
        temporary, fd = home.begin_file(os.path.basename(os.path.dirname(path)))
        try:
            for piece in pieces(_changed_reader(read, changes), 0, size):
                disk.write(fd, piece)
            _compare(path, read, size, reader_of(disk, fd), disk.fstat(fd).st_size)
            disk.sync(fd)
            disk.rename(temporary, path)
        except BaseException:
            disk.discard(temporary)
            raise
        finally:
            disk.close(fd)
        disk.sync_folder(os.path.dirname(path))


def _changes(read: Read, size: int, erasures: list[Erasure]) -> Changes:
    """Return the changes: every line of these entries, and the remains of writes that were abandoned."""
    eraser = Eraser(erasures)
    end = last_newline(read, size)
    changes: dict[int, bytes] = {}
    counted: list[tuple[int, int]] = []
    given_up: list[tuple[int, int]] = []
    for item in placed_lines(lines(read, 0, end)):
        if isinstance(item, Damage):
            if item.kind == "unfinished":
                given_up.append((item.offset, item.length))
            elif item.kind == "order":
                changes.update(_changed(item.offset, read(item.length, item.offset), eraser))
            continue
        offset, entry, line = item
        counted.append((offset, offset + len(line)))
        if 0 < entry.sealed <= offset:
            given_up.append((offset - entry.sealed, entry.sealed))
        if eraser.concerns(entry):
            changes.update(_changed(offset, line, eraser))
    if end < size:
        if is_adoptable(read, size):
            changes.update(_changed(end, read(size - end, end), eraser))
        else:
            given_up.append((end, size - end))
    counted.sort()
    for offset, length in given_up:  # one write may be listed twice: as unfinished, and by the line that sealed it
        changes.update(_blanks(offset, read(length, offset), counted))
    return _disjoint(changes)


def _disjoint(changes: dict[int, bytes]) -> Changes:
    """Return the changes in order, without those of bytes that an earlier one changes."""
    disjoint: Changes = []
    position = 0
    for offset, data in sorted(changes.items()):
        if offset >= position:
            disjoint.append((offset, data))
            position = offset + len(data)
    return disjoint


def _changed(offset: int, line: bytes, eraser: Eraser) -> Changes:
    try:
        entry = entry_of(decode(line))
    except Unreadable:
        return []
    left = eraser.erased(line, entry)
    return [(offset, left)] if left != line else []


def _blanks(offset: int, data: bytes, counted: list[tuple[int, int]]) -> Changes:
    """Blank out abandoned lines: they were never acknowledged, and may repeat erased content."""
    blanks: Changes = []
    for line in data.split(b"\n"):
        end = offset + len(line)
        before = bisect_left(counted, (end,))
        if line.strip() and not (before and counted[before - 1][1] > offset):
            blanks.append((offset, b" " * len(line)))
        offset = end + 1
    return blanks


def _changed_reader(read: Read, changes: Changes) -> Read:
    """Return a function that reads a file as it is with the changes."""
    offsets = [offset for offset, _ in changes]

    def read_changed(length: int, offset: int) -> bytes:
        data = bytearray(read(length, offset))
        first, last = bisect_right(offsets, offset) - 1, bisect_left(offsets, offset + len(data))
        for at, new in changes[max(0, first) : last]:
            start, end = max(at, offset), min(at + len(new), offset + len(data))
            if start < end:
                data[start - offset : end - offset] = new[start - at : end - at]
        return bytes(data)

    return read_changed


def _compare(path: str, read: Read, size: int, new: Read, new_size: int) -> None:
    """Check, before a file is replaced, that everything that could be read can still be read, at the same offset."""
    if size != new_size or _trace(read, size) != _trace(new, new_size):
        raise Corrupt(
            f"{os.path.basename(path)} cannot be written anew without losing what can be read",
            hint="nothing was changed; look with `turnlog doctor`",
        )


def _trace(read: Read, size: int) -> list[tuple[int, int, str]]:
    items = placed_lines(lines(read, 0, last_newline(read, size)))
    return [(item[0], item[1].seq, item[1].id) for item in items if not isinstance(item, Damage)]
