"""A log without its damage.

A repair moves nothing. Damaged bytes become blanks, so every line that counts stays what it was and where it was:
offsets that other lines hold (`wide`, `sealed`) still lead where they led, and a writer in another process goes on
with the repaired file as if nothing had happened. The file as it was is kept in the trash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from turnlog.errors import Corrupt, NotFound
from turnlog.layout import SESSIONS, TRASH
from turnlog.log.draft import prepare, stamp_drafts, to_text
from turnlog.log.entry import Note
from turnlog.log.ids import word
from turnlog.store import Clock
from turnlog.store.capability import Repaired
from turnlog.store.files.disk import Disk, Held, disk_errors
from turnlog.store.files.lines import Read
from turnlog.store.files.names import file_name
from turnlog.store.files.survey import Cut, Survey, Visit
from turnlog.store.files.tail import Tail

_STEP = 1 << 20
_LISTED = 50
"""So many regions are named in the note; more would only make it long."""


def look(disk: Disk, path: str, *, visit: Visit | None = None) -> Survey:
    """Read a whole log. Nothing is locked, nothing is changed."""
    with disk_errors(f"reading {path}"):
        fd = disk.open(path, os.O_RDONLY)
        try:
            return Survey(reader_of(disk, fd), disk.fstat(fd).st_size, visit=visit)
        finally:
            disk.close(fd)


def repair(
    disk: Disk, folder: str, session_id: str, *, clock: Clock, without: frozenset[int] = frozenset()
) -> Repaired | None:
    """Blank out what is damaged in a session's log, and the entries in `without`. None if there is nothing to do.

    Under the writer's lock: the original gets a second name in the trash, the new file takes over its first
    name in one step, and each is on the disk before the next step depends on it.
    """
    path = os.path.join(folder, SESSIONS, file_name(session_id))
    with disk_errors(f"repairing session {session_id}"), open_locked(disk, path) as held:
        return _Repair(disk, path, held.fileno(), without).run(os.path.join(folder, TRASH), clock())


class _Repair:
    def __init__(self, disk: Disk, path: str, fd: int, without: frozenset[int]) -> None:
        self._disk = disk
        self._path = path
        self._fd = fd
        self._read = reader_of(disk, fd)
        self._size = disk.fstat(fd).st_size
        self._without = without
        self._survey = Survey(self._read, self._size, without=without)
        self._cuts = self._survey.cuts()
        self._blanked = sum(cut.end - cut.start for cut in self._cuts)

    def run(self, trash: str, now: int) -> Repaired | None:
        if not self._cuts:
            return None
        original = self._name(trash, now)
        seq, line = self._note(os.path.basename(original), now)
        temporary = os.path.join(os.path.dirname(self._path), f".new-{word(16)}")
        try:
            self._write(temporary, line, seq)
            self._keep(original)
            self._disk.rename(temporary, self._path)
        except BaseException:
            self._disk.discard(temporary)
            raise
        self._disk.sync_folder(os.path.dirname(self._path))
        return Repaired(self._blanked, original, seq)

    def _name(self, trash: str, now: int) -> str:
        """A name in the trash that says what it is, and that no listing takes for a session."""
        stamp = to_text(now).replace(":", "").replace("-", "")
        name = os.path.join(trash, f"{os.path.basename(self._path)}.before-repair-{stamp}")
        return f"{name}-{word(8)}" if self._disk.exists(name) else name

    def _note(self, original: str, now: int) -> tuple[int, bytes]:
        """The line that says what was done. Its `seq` is above whatever the damaged bytes held."""
        tail = Tail()
        tail.look(self._read, self._size, lambda entry_id, seq: None)
        gone = [region for region in self._survey.regions if not (region.is_used or region.is_stray)]
        data: dict[str, Any] = {
            "original": original,
            "blanked_bytes": self._blanked,
            "regions": [{"offset": r.offset, "length": r.length, "kind": r.kind} for r in gone[:_LISTED]],
        }
        if len(gone) > _LISTED:
            data["more_regions"] = len(gone) - _LISTED
        if self._without:
            data["folds"] = sorted(self._without)[:_LISTED]
        text = f"repaired: {self._blanked} damaged bytes were left out; trash/{original} has the file as it was"
        draft, _ = prepare(Note(text=text, data=data))
        floor = max(tail.floor, self._survey.last)
        (stamped,) = stamp_drafts([draft], floor=floor, at=tail.at, now=now, head=0)
        stamps = stamped.stamps
        wide = self._survey.wide
        if wide:
            wide += sum(cut.start == cut.end and cut.start <= wide for cut in self._cuts)
            stamps += f',"wide":{wide}'
        return floor + 1, draft.sealed(stamps)[0]

    def _write(self, temporary: str, line: bytes, note: int) -> None:
        fd = self._disk.open(temporary, os.O_RDWR, create=True)
        try:
            self._disk.lock(fd)  # so that nobody takes it for abandoned
            for piece in _pieces(self._read, self._size, self._cuts):
                self._disk.write(fd, piece)
            self._disk.write(fd, line)
            self._check(reader_of(self._disk, fd), self._disk.fstat(fd).st_size, note)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)

    def _check(self, read: Read, size: int, note: int) -> None:
        """Before anything is replaced: whatever could be read can still be read."""
        if Survey(read, size, without=frozenset([note])).trace == self._survey.trace:
            return
        before: set[tuple[int, str]] = set()
        after: set[tuple[int, str]] = set()
        Survey(self._read, self._size, visit=lambda entry: before.add((entry.seq, entry.id)), without=self._without)
        Survey(read, size, visit=lambda entry: after.add((entry.seq, entry.id)))
        if before - after:
            raise Corrupt(
                f"{os.path.basename(self._path)} cannot be repaired without losing what can still be read",
                hint="nothing was changed; please report this, with the file if you can",
            )

    def _keep(self, original: str) -> None:
        """Give the file its second name, in the trash, and have both it and the name on the disk."""
        trash = os.path.dirname(original)
        try:
            self._disk.mkdir(trash)
            self._disk.sync_folder(os.path.dirname(trash))
        except FileExistsError:
            pass
        self._disk.sync(self._fd)
        self._disk.link(self._path, original)
        self._disk.sync_folder(trash)


def reader_of(disk: Disk, fd: int) -> Read:
    """What reads an open file."""

    def read(length: int, offset: int) -> bytes:
        return disk.pread(fd, length, offset)

    return read


def open_locked(disk: Disk, path: str) -> Held:
    """The file that has this name now, with the writer's lock."""
    while True:
        held = disk.hold(path)
        try:
            if os.path.samestat(disk.fstat(held.fileno()), disk.stat(path)):
                return held
        except FileNotFoundError:
            held.close()
            raise NotFound(f"{path} was deleted or moved", hint="see `turnlog ls`") from None
        except BaseException:
            held.close()
            raise
        held.close()  # somebody replaced it while we waited


def _pieces(read: Read, size: int, cuts: list[Cut]) -> Iterator[bytes]:
    """The bytes of the repaired log, without its note."""
    position = 0
    for cut in [*cuts, Cut(size, size)]:
        while position < cut.start:
            piece = read(min(_STEP, cut.start - position), position)
            if not piece:
                raise Corrupt("the log became shorter while it was repaired", hint="nothing was changed; try again")
            position += len(piece)
            yield piece
        yield from _blank(cut)
        position = cut.end


def _blank(cut: Cut) -> Iterator[bytes]:
    """As many bytes as the cut has, in lines that say nothing; one more where there is no room for a line end."""
    length = cut.end - cut.start
    if length == 0:
        if cut.breaks_before or cut.breaks_after:
            yield b"\n"
        return
    position = 0
    while position < length:
        piece = bytearray(b" " * min(_STEP, length - position))
        if position or cut.breaks_before:
            piece[0] = 10
        position += len(piece)
        if position == length and cut.breaks_after:
            piece[-1] = 10
        yield bytes(piece)
