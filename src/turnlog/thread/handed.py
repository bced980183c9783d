"""Which sessions of other agents were written from those of a home: for agents whose files have no place to say so."""

from __future__ import annotations

import os
from functools import cached_property

import msgspec

from turnlog.formats import Copied, private_folders
from turnlog.thread.made import list_path

_FILE = "handed"


class _Note(msgspec.Struct):
    agent: str
    id: str
    copied: Copied


class HandedOver:
    """The list of one home. Where it cannot be written or read, such a copy is a session like others."""

    def __init__(self, location: str | None) -> None:
        self._path = list_path(location, _FILE)

    @cached_property
    def known(self) -> dict[tuple[str, str], Copied]:
        """`all()`, cached."""
        return self.all()

    def note(self, agent: str, id: str, copied: Copied) -> None:
        """That session of an agent is about to be written."""
        line = msgspec.json.encode(_Note(agent, id, copied)) + b"\n"
        if not self._path or self.all().get((agent, id)) == copied:
            return
        try:
            private_folders(os.path.dirname(self._path))
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except OSError:
            return  # no session fails for this

    def all(self) -> dict[tuple[str, str], Copied]:
        """What was written, by the agent and the id there."""
        copies: dict[tuple[str, str], Copied] = {}
        try:
            with open(self._path, "rb") as file:
                for line in file:
                    try:
                        note = msgspec.json.decode(line, type=_Note)
                    except (msgspec.DecodeError, msgspec.ValidationError):
                        continue  # it was cut short
                    copies[note.agent, note.id] = note.copied
        except OSError:
            return copies
        return copies
