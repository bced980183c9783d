"""Which sessions of other agents were written from sessions of a home, for agents whose files cannot record that."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property

import msgspec

from turnlog.errors import TurnlogError
from turnlog.interop.copied import Copied
from turnlog.interop.place import private_folders
from turnlog.layout import HANDED_OVER
from turnlog.log.codec import BAD_JSON
from turnlog.thread.home.createdhere import list_path


class _Note(msgspec.Struct):
    agent: str
    id: str
    copied: Copied | None
    """None if it is not a copy after all."""


class HandedOver:
    """The list of one home. If it cannot be written or read, such a copy counts as a session like any other."""

    def __init__(self, location: str | None) -> None:
        self._path = list_path(location, HANDED_OVER)

    @cached_property
    def copies(self) -> dict[tuple[str, str], Copied]:
        """`all()`, cached."""
        return self.all()

    @contextmanager
    def noting(self, agent: str, id: str, copied: Copied) -> Generator[None]:
        """Record that this session of an agent is about to be written; if that raises, what was recorded before."""
        before = self.all().get((agent, id))
        self._note(_Note(agent, id, copied))
        try:
            yield
        except TurnlogError:
            self._note(_Note(agent, id, before))
            raise

    def _note(self, note: _Note) -> None:
        line = msgspec.json.encode(note) + b"\n"
        if not self._path or self.all().get((note.agent, note.id)) == note.copied:
            return
        try:
            private_folders(os.path.dirname(self._path))
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except OSError:
            return  # an export must not fail because of the list

    def all(self) -> dict[tuple[str, str], Copied]:
        """The copies that were written, by agent and the id there."""
        copies: dict[tuple[str, str], Copied] = {}
        try:
            with open(self._path, "rb") as file:
                for line in file:
                    try:
                        note = msgspec.json.decode(line, type=_Note)
                    except BAD_JSON:
                        continue  # a truncated line
                    copies.pop((note.agent, note.id), None)
                    if note.copied is not None:
                        copies[note.agent, note.id] = note.copied
        except OSError:
            return copies
        return copies
