"""Which sessions were made here: by this person, on this machine, in that home.

A log says with which command its session goes on, and logs come from anywhere. So there is a list beside them that
nothing moves: in the folder of the home, or in this machine's own folder for a home in a database. A line is a digest
of the list's inode, a session's id and its command. What is known is that exactly this command was given here; a copy
of the list says nothing, wherever it was unpacked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from turnlog.log.digest import sha256
from turnlog.log.entry import Entry, Start
from turnlog.machine.environment import state_folder
from turnlog.machine.location import folder_of, is_shared, key_of

if TYPE_CHECKING:
    from turnlog.thread.history import History

_FILE = "made"
_DIGITS = 32


def list_path(location: str | None, name: str) -> str:
    """The path of a list of a home that is never moved with it; "" where there is no place for one."""
    folder = None if location is None else folder_of(location)
    if folder is not None:
        return os.path.join(folder, name)
    if location is not None and is_shared(location) and state_folder():
        return os.path.join(state_folder(), name, key_of(location))
    return ""


class CreatedHere:
    """The list of one home. Where it cannot be written or read, nothing is known, and people are asked."""

    def __init__(self, location: str | None) -> None:
        self.location = location
        """Where the home is; None where nobody said."""
        self._path = list_path(location, _FILE)

    def note(self, start: Entry) -> None:
        """The session that begins with this entry was made here."""
        if self._path and isinstance(start, Start):
            try:
                self._write(start.session_id, start.resume)
            except OSError:
                return  # no session fails for this

    def _write(self, session_id: str, command: Sequence[str]) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            from turnlog.formats import private_folders

            private_folders(os.path.dirname(self._path))
            fd = os.open(self._path, flags, 0o600)
        try:
            status = os.fstat(fd)
            if status.st_mode & 0o777 != 0o600:  # whatever the umask
                os.fchmod(fd, 0o600)
            os.write(fd, _line(status, session_id, command))
        finally:
            os.close(fd)

    def knows(self, session_id: str, command: Sequence[str]) -> bool:
        """Whether that session was made here, with that command."""
        if not self._path:
            return False
        try:
            with open(self._path, "rb") as file:
                status = os.fstat(file.fileno())
                return status.st_uid == os.geteuid() and _line(status, session_id, command) in file
        except OSError:
            return False

    def passes_on(self, history: History, fields: Mapping[str, Any]) -> bool:
        """Whether a fork with these fields is of here: not if its command is from a log of somebody else's."""
        if "origin" in fields:
            return False  # another agent's
        command = history.state.start.get("resume", ())
        return "resume" in fields or not command or self.knows(history.id, command)


def _line(status: os.stat_result, session_id: str, command: Sequence[str]) -> bytes:
    # Lengths, so that no two lists of words are the same text.
    text = "".join(f"{len(part)}:{part}" for part in (str(status.st_ino), session_id, *command))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS].encode() + b"\n"
