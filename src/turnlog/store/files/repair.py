"""Repairing a log.

A repair moves nothing. Damaged bytes become blanks, so every line that counts keeps its content and its offset:
offsets in other lines (`wide`, `sealed`) stay valid, and a writer in another process continues with the repaired file.
The original file is kept in the trash.
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
from turnlog.store.files.disk import Disk, disk_errors, open_locked
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.lines import STEP, Read, pieces, reader_of
from turnlog.store.files.names import new_temporary_name
from turnlog.store.files.survey import Cut, Survey
from turnlog.store.files.tail import Tail

_LISTED = 50
"""The number of regions that the note lists."""


def repair(
    home: HomeFolder, session_id: str, *, clock: Clock, without: frozenset[int] = frozenset()
) -> Repaired | None:
    """Blank out the damage in a session's log, and the entries in `without`. None if there is nothing to do.

    Under the writer's lock: the original gets a second name in the trash, the new file takes over its first
    name in one step, and each is on the disk before the next step depends on it.
    """
    disk = home.disk
    with disk_errors(f"repairing session {session_id}"):
        path = home.path(SESSIONS, session_id)
        held = open_locked(disk, path)
        if held is None:
            raise NotFound(f"{path} was deleted or moved", hint="see `turnlog ls`")
        with held:
            return _Repair(disk, path, held.fileno(), without).run(os.path.join(home.folder, TRASH), clock())


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
        temporary = os.path.join(os.path.dirname(self._path), new_temporary_name())
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
        """Return a descriptive name in the trash that listings do not take for a session."""
        stamp = to_text(now).replace(":", "").replace("-", "")
        name = os.path.join(trash, f"{os.path.basename(self._path)}.before-repair-{stamp}")
        return f"{name}-{word(8)}" if self._disk.exists(name) else name

    def _note(self, original: str, now: int) -> tuple[int, bytes]:
        """Return the note about the repair. Its `seq` is above any that the damaged bytes may have held."""
        tail = Tail()
        tail.read_end(self._read, self._size, lambda entry_id, seq: None)
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
            self._disk.lock(fd)  # so that it does not count as abandoned
            for piece in _repaired(self._read, self._size, self._cuts):
                self._disk.write(fd, piece)
            self._disk.write(fd, line)
            self._check(reader_of(self._disk, fd), self._disk.fstat(fd).st_size, note)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)

    def _check(self, read: Read, size: int, note: int) -> None:
        """Check, before the file is replaced, that everything that could be read can still be read."""
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
        """Give the original a second name in the trash, and sync both."""
        trash = os.path.dirname(original)
        try:
            self._disk.mkdir(trash)
            self._disk.sync_folder(os.path.dirname(trash))
        except FileExistsError:
            pass
        self._disk.sync(self._fd)
        self._disk.link(self._path, original)
        self._disk.sync_folder(trash)


def _repaired(read: Read, size: int, cuts: list[Cut]) -> Iterator[bytes]:
    """Yield the bytes of the repaired log, without its note."""
    position = 0
    for cut in [*cuts, Cut(size, size)]:
        yield from pieces(read, position, cut.start)
        yield from _blank(cut)
        position = cut.end


def _blank(cut: Cut) -> Iterator[bytes]:
    """Yield blank lines as long as the cut; one byte more if a line end does not fit."""
    length = cut.end - cut.start
    if length == 0:
        if cut.breaks_before or cut.breaks_after:
            yield b"\n"
        return
    position = 0
    while position < length:
        piece = bytearray(b" " * min(STEP, length - position))
        if position or cut.breaks_before:
            piece[0] = 10
        position += len(piece)
        if position == length and cut.breaks_after:
            piece[-1] = 10
        yield bytes(piece)
