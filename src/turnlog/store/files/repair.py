"""A log without its damage.

A repair moves nothing. Damaged bytes become blanks, so every line that counts stays what it was and where it was:
offsets that other lines hold (`wide`, `sealed`) still lead where they led, and a writer in another process goes on
with the repaired file as if nothing had happened. The file as it was is kept in the trash.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound
from turnlog.log.draft import number, prepare, to_text
from turnlog.log.entry import Note
from turnlog.log.ids import word
from turnlog.store import Clock
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.lines import Read
from turnlog.store.files.names import file_name
from turnlog.store.files.survey import Cut, Survey, Visit
from turnlog.store.files.tail import Tail

_STEP = 1 << 20
_LISTED = 50
"""So many regions are named in the note; more would only make it long."""


class Repaired(Struct, frozen=True):
    """What a repair did."""

    blanked_bytes: int
    original: str
    """Where the file as it was is kept."""
    note: int
    """The `seq` of the note that says so in the log."""


def look(disk: Disk, path: str, *, visit: Visit | None = None) -> Survey:
    """Read a whole log. Nothing is locked, nothing is changed."""
    with disk_errors(f"reading {path}"):
        fd = disk.open(path, os.O_RDONLY)
        try:
            return Survey(_reader(disk, fd), disk.fstat(fd).st_size, visit=visit)
        finally:
            disk.close(fd)


def repair(
    disk: Disk, folder: str, session_id: str, *, clock: Clock, without: frozenset[int] = frozenset()
) -> Repaired | None:
    """Blank out what is damaged in a session's log, and the entries in `without`. None if there is nothing to do.

    Under the writer's lock: the original gets a second name in the trash, the new file takes over its first
    name in one step, and each is on the disk before the next step depends on it.
    """
    path = os.path.join(folder, "sessions", file_name(session_id))
    with disk_errors(f"repairing session {session_id}"):
        fd = _open_locked(disk, path)
        try:
            read = _reader(disk, fd)
            size = disk.fstat(fd).st_size
            survey = Survey(read, size, without=without)
            cuts = survey.cuts()
            if not cuts:
                return None
            now = clock()
            disk.sync(fd)
            original = _keep(disk, folder, path, now)
            note, line = _note(read, size, survey, cuts, os.path.basename(original), now, without)
            _replace(disk, path, read, size, cuts, line, survey.trace, note)
        finally:
            disk.close(fd)
    return Repaired(sum(cut.end - cut.start for cut in cuts), original, note)


def _reader(disk: Disk, fd: int) -> Read:
    def read(length: int, offset: int) -> bytes:
        return disk.pread(fd, length, offset)

    return read


def _open_locked(disk: Disk, path: str) -> int:
    """A descriptor of the file that has this name now, with the writer's lock."""
    while True:
        fd = disk.open(path, os.O_RDWR)
        try:
            disk.lock(fd)
            if os.path.samestat(disk.fstat(fd), disk.stat(path)):
                return fd
        except FileNotFoundError:
            disk.close(fd)
            raise NotFound(f"{path} was deleted or moved", hint="see `turnlog ls`") from None
        except BaseException:
            disk.close(fd)
            raise
        disk.close(fd)  # somebody replaced it while we waited


def _keep(disk: Disk, folder: str, path: str, now: int) -> str:
    """Give the file a second name in the trash, on the disk when this returns."""
    trash = os.path.join(folder, "trash")
    try:
        disk.mkdir(trash)
        disk.sync_folder(folder)
    except FileExistsError:
        pass
    stamp = to_text(now).replace(":", "").replace("-", "")
    name = os.path.join(trash, f"{os.path.basename(path)}.before-repair-{stamp}")
    try:
        disk.link(path, name)
    except FileExistsError:
        name = f"{name}-{word(4)}"
        disk.link(path, name)
    disk.sync_folder(trash)
    return name


def _note(
    read: Read, size: int, survey: Survey, cuts: list[Cut], original: str, now: int, without: frozenset[int]
) -> tuple[int, bytes]:
    """The line that says what was done. Its `seq` is above whatever the damaged bytes held."""
    tail = Tail()
    tail.look(read, size, lambda entry_id, seq: None)
    blanked = sum(cut.end - cut.start for cut in cuts)
    gone = [region for region in survey.regions if not (region.is_used or region.is_stray)]
    data: dict[str, Any] = {
        "original": original,
        "blanked_bytes": blanked,
        "regions": [
            {"offset": region.offset, "length": region.length, "kind": region.kind} for region in gone[:_LISTED]
        ],
    }
    if len(gone) > _LISTED:
        data["more_regions"] = len(gone) - _LISTED
    if without:
        data["folds"] = sorted(without)[:_LISTED]
    text = f"repaired: {blanked} damaged bytes were left out; trash/{original} has the file as it was"
    draft, _ = prepare(Note(text=text, data=data))
    floor = max(tail.floor, survey.last)
    ((_, stamps, _),) = number([draft], floor=floor, at=tail.at, now=now, head=0)
    if survey.wide:
        shift = sum(cut.start == cut.end and cut.start <= survey.wide for cut in cuts)
        stamps += f',"wide":{survey.wide + shift}'
    return floor + 1, draft.sealed(stamps)[0]


def _replace(disk: Disk, path: str, read: Read, size: int, cuts: list[Cut], line: bytes, trace: int, note: int) -> None:
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".new-{word(16)}")
    new = disk.open(temporary, os.O_RDWR, create=True)
    try:
        try:
            for piece in _pieces(read, size, cuts):
                disk.write(new, piece)
            disk.write(new, line)
            _check(disk, new, path, trace, note)
            disk.sync(new)
        finally:
            disk.close(new)
        disk.rename(temporary, path)
    except BaseException:
        _discard(disk, temporary)
        raise
    disk.sync_folder(folder)


def _check(disk: Disk, fd: int, path: str, trace: int, note: int) -> None:
    """Before anything is replaced: the new file has to read as the old one does, without its damage."""
    survey = Survey(_reader(disk, fd), disk.fstat(fd).st_size, without=frozenset([note]))
    if survey.trace != trace or any(not (region.is_used or region.is_stray) for region in survey.regions):
        raise Corrupt(
            f"{os.path.basename(path)} cannot be repaired without changing what is read from it",
            hint="nothing was changed; please report this, with the file if you can",
        )


def _discard(disk: Disk, path: str) -> None:
    try:
        disk.unlink(path)
    except OSError:
        return  # the disk is failing; a leftover that has no session's name harms nobody


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
