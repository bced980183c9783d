"""Edits of other programs' files: planned for all that are meant before any is made, and taken back to the byte."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from turnlog.errors import Corrupt, Unavailable
from turnlog.log.startup import NamedTuple
from turnlog.machine.imprint import Imprint, Imprints, missing_folders, reverted
from turnlog.machine.replace import replace_file


class FileEdit(NamedTuple):
    """One file to be changed. `after` is None if the file is to be removed."""

    agent: str
    path: str
    before: bytes | None
    after: bytes | None
    imprint: Imprint | None = None
    """What is to be remembered; None where it is to be forgotten."""

    @property
    def is_change(self) -> bool:
        """Whether the edit changes anything."""
        return self.before != self.after

    @property
    def change(self) -> str:
        """What becomes of the file: `written` or `removed`."""
        return "removed" if self.after is None else "written"


def make_edit(edit: FileEdit, imprints: Imprints) -> None:
    """Change one file. What it was is kept before, and what was made for it goes with it."""
    imprint = imprints.find(edit.path)
    if edit.imprint is not None:
        imprints.keep(edit.imprint)
    if edit.is_change and edit.after is not None:
        replace_file(edit.path, edit.before, edit.after)
    elif edit.is_change:
        _remove(edit, imprint.folders if imprint is not None else [])
    if edit.imprint is None:
        if imprint is not None and edit.after is not None:
            _leave_to_others(edit, edit.after, imprint, imprints)
        imprints.forget(edit.path)


def _leave_to_others(edit: FileEdit, after: bytes, imprint: Imprint, imprints: Imprints) -> None:
    """Later edits were made on top of ours: their original is now our original."""
    for other in imprints.others(edit.path):
        theirs = other.find(edit.path)
        if theirs is not None and theirs.before == imprint.after:
            other.keep(Imprint(edit.path, imprint.before, after, imprint.folders))


def restored(imprints: Imprints, path: str, now: str, without: Callable[[Any], str], read: Callable[[str], Any]) -> str:
    """The text without our changes, as close to the original as possible.

    `without` removes our part from the text; its argument is the value of the file before us, None if that is unknown.
    """
    imprint = imprints.find(path)
    if imprint is None:
        return without(None)
    rest = without(read((imprint.before or b"").decode(errors="replace")))
    return reverted(now, imprint, rest, same=lambda one, other: _value_or_unreadable(read, one) == read(other))


_UNREADABLE = object()
"""The value of a text that cannot be read: equal to no other."""


def _value_or_unreadable(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except Corrupt:
        return _UNREADABLE


def edit_without_us(agent: str, imprints: Imprints, path: str, before: bytes, rest: str, *, is_empty: bool) -> FileEdit:
    """The edit that leaves the rest; it removes the file if we created it and nothing is left in it."""
    imprint = imprints.find(path)
    is_made = imprint is not None and imprint.before is None
    return FileEdit(agent, path, before, None if is_made and is_empty else rest.encode())


def imprint_of(imprints: Imprints, path: str, before: bytes | None, after: str) -> Imprint:
    """What is to be remembered of a file that was so `before` us."""
    imprint = imprints.find(path)
    folders = imprint.folders if imprint is not None else missing_folders(path)
    if imprint is not None and imprint.before is None and not (before or b"").strip():
        before = None
    return Imprint(path, before, after.encode(), folders)


def _remove(edit: FileEdit, folders: list[str]) -> None:
    try:
        os.unlink(edit.path)
        for folder in reversed(folders):
            os.rmdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        if os.path.lexists(edit.path):
            raise Unavailable(f"{edit.path} could not be removed: {error.strerror}") from None
