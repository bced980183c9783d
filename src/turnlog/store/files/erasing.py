"""Erasing in files: an intent, every file that may hold it written anew without it, a record, and no intent any more.

A log keeps its length and its offsets, and gets its name in one step: whoever reads it meanwhile reads what was there.
Whoever dies leaves the intent, and the next who writes goes on with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from turnlog.errors import Corrupt, NotFound
from turnlog.layout import BASES, DERIVED, ERASED, ERASING, SESSIONS, TRASH
from turnlog.log.codec import Damage, Unreadable, decode
from turnlog.log.erasure.content import ErasedLog, ErasingPlan, Erasure
from turnlog.log.erasure.line import Eraser
from turnlog.log.ids import word
from turnlog.log.written import entry_of, placed_lines
from turnlog.store import IMPORTED
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.glimpse import first_id
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.lines import Read, last_newline, lines
from turnlog.store.files.names import file_name
from turnlog.store.files.repair import open_locked, reader_of
from turnlog.store.files.tail import is_adoptable

_STEP = 1 << 20
_SUFFIX = ".json"
_decode_plan = msgspec.json.Decoder(ErasingPlan).decode
_encode = msgspec.json.Encoder().encode
Change = tuple[int, bytes]
"""Where in a file, and what it says there instead: as many bytes."""


class FileErasing:
    """See `EraseEntries`."""

    def __init__(self, home: HomeFolder, blobs: FileBlobs) -> None:
        self._home = home
        self._disk = home.disk
        self._blobs = blobs
        self._applied: set[str] = set()
        """Plans whose lines are done with, by us."""

    def _in(self, *names: str) -> str:
        return os.path.join(self._home.folder, *names)

    def erase(self, plan: ErasingPlan) -> str:
        """See `EraseEntries.erase`. Until the intent is on the disk nothing has happened; then all of it does."""
        name = word(16)
        with disk_errors(f"erasing in {self._home.folder}"), self._blobs.exclusively():
            self._home.know_erasures()
            for log in plan.logs:
                for path in self._paths(log):
                    _changes_of(self._disk, path, log.erasures)  # what cannot be done is known before it is begun
            self._home.write_file(self._in(ERASING, name + _SUFFIX), _encode(plan))
            self._apply(plan)
            self._applied.add(name)
        return name

    def unsettled(self) -> dict[str, ErasingPlan]:
        """See `EraseEntries.unsettled`. Lines that somebody did not come to are erased first."""
        if self._plans().keys() - self._applied:
            with disk_errors(f"erasing in {self._home.folder}"), self._blobs.exclusively():
                for name, plan in self._plans().items():
                    if name not in self._applied:
                        self._apply(plan)
                        self._applied.add(name)
        return self._plans()

    def _plans(self) -> dict[str, ErasingPlan]:
        with disk_errors(f"looking at {self._home.folder}"):
            plans: dict[str, ErasingPlan] = {}
            for name in self._names(ERASING):
                with suppress(FileNotFoundError):  # somebody finished it while we looked
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
        """Moves, purges, collections and other erasures are locked out meanwhile."""
        for log in plan.logs:
            self._finish_move(log.session)
            for path in self._paths(log):
                with suppress(NotFound):
                    rewrite(self._disk, self._home, path, log.erasures)
            self._remember(log)
        self._remove_abandoned()

    def _finish_move(self, session: str) -> None:
        """Somebody died between giving a log its new name and taking the old one."""
        deleted = self._home.path(TRASH, session)
        if self._disk.exists(deleted) and self._home.is_back(os.path.basename(deleted)):
            self._disk.unlink(deleted)
            self._disk.sync_folder(self._in(TRASH))

    def _paths(self, log: ErasedLog) -> Iterator[str]:
        """Every file that has lines of that log."""
        for place in (SESSIONS, TRASH):
            path = self._home.path(place, log.session)
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
        there = {(one.seq, one.part) for one in earlier}
        new = [one for one in log.erasures if (one.seq, one.part) not in there]
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
        """What never got its name, and whose writer is gone, may hold anything."""
        for place in (SESSIONS, TRASH, BASES):
            for name in self._disk.listdir(self._in(place)):
                if name.startswith(".new-"):
                    self._home.remove_if_abandoned(self._in(place, name))
        derived = self._in(DERIVED)
        for name in self._disk.listdir(derived) if self._disk.exists(derived) else []:
            if name.startswith((IMPORTED, ".new-")):  # what was read of a source may say what was said
                self._disk.discard(os.path.join(derived, name))

    def _names(self, place: str) -> list[str]:
        try:
            return [name for name in self._disk.listdir(self._in(place)) if name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return []

    def _read(self, path: str) -> bytes:
        fd = self._disk.open(path, os.O_RDONLY)
        try:
            return self._disk.pread(fd, self._disk.fstat(fd).st_size, 0)
        finally:
            self._disk.close(fd)


# ── one file ──────────────────────────────────────────────────────────────────────────────────────


def rewrite(disk: Disk, home: HomeFolder, path: str, erasures: list[Erasure]) -> None:
    """Under the writer's lock: a file that says the same without what is erased takes the name of this one."""
    with open_locked(disk, path) as held:
        read, size = reader_of(disk, held.fileno()), disk.fstat(held.fileno()).st_size
        changes = list(_changes(read, size, erasures))
        if not changes:
            return
        temporary, fd = home.begin_file(os.path.basename(os.path.dirname(path)))
        try:
            for piece in _pieces(read, size, changes):
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


def _changes_of(disk: Disk, path: str, erasures: list[Erasure]) -> list[Change]:
    fd = disk.open(path, os.O_RDONLY)
    try:
        return list(_changes(reader_of(disk, fd), disk.fstat(fd).st_size, erasures))
    finally:
        disk.close(fd)


def _changes(read: Read, size: int, erasures: list[Erasure]) -> Iterator[Change]:
    """What has to be written otherwise: the lines of these entries, wherever they stand, and what never was one."""
    eraser = Eraser(erasures)
    end = last_newline(read, size)
    counted: set[int] = set()
    given_up: list[tuple[int, int]] = []
    for item in placed_lines(lines(read, 0, end)):
        if isinstance(item, Damage):
            if item.kind == "unfinished":
                given_up.append((item.offset, item.length))
            elif item.kind == "order":
                yield from _changed(item.offset, read(item.length, item.offset), eraser)
            continue
        offset, entry, line = item
        counted.add(offset)
        if entry.sealed:
            given_up.append((offset - entry.sealed, entry.sealed))
        if eraser.concerns(entry):
            yield from _changed(offset, line, eraser)
    if end < size:
        if is_adoptable(read, size):
            yield from _changed(end, read(size - end, end), eraser)
        else:
            given_up.append((end, size - end))
    for offset, length in given_up:
        yield from _blanks(offset, read(length, offset), counted)


def _changed(offset: int, line: bytes, eraser: Eraser) -> Iterator[Change]:
    try:
        entry = entry_of(decode(line))
    except Unreadable:
        return
    left = eraser.erased(line, entry)
    if left != line:
        yield offset, left


def _blanks(offset: int, data: bytes, counted: set[int]) -> Iterator[Change]:
    """What a writer gave up was never acknowledged, and may be what was written once more behind it."""
    for line in data.split(b"\n"):
        if line.strip() and offset not in counted:
            yield offset, b" " * len(line)
        offset += len(line) + 1


def _pieces(read: Read, size: int, changes: Iterable[Change]) -> Iterator[bytes]:
    position = 0
    for offset, data in [*sorted(changes), (size, b"")]:
        while position < offset:
            piece = read(min(_STEP, offset - position), position)
            if not piece:
                raise Corrupt("the log became shorter while something was erased in it", hint="try again")
            position += len(piece)
            yield piece
        yield data
        position += len(data)


def _compare(path: str, read: Read, size: int, new: Read, new_size: int) -> None:
    """Before anything is replaced: whatever could be read can still be read, where it was."""
    if size != new_size or _trace(read, size) != _trace(new, new_size):
        raise Corrupt(
            f"{os.path.basename(path)} cannot be written anew without losing what can be read",
            hint="nothing was changed; look with `turnlog doctor`",
        )


def _trace(read: Read, size: int) -> list[tuple[int, int, str]]:
    items = placed_lines(lines(read, 0, last_newline(read, size)))
    return [(item[0], item[1].seq, item[1].id) for item in items if not isinstance(item, Damage)]
