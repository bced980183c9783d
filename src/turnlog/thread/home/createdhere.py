"""Which sessions were created here: by this user, on this machine, in this home.

A log contains the command that resumes its session, and logs come from anywhere. So each home has a list that is never
copied with it: in the folder of the home, or in this machine's state folder for a home in a database. A line is a
digest of the list's inode, the id of a session and its command. It proves that exactly this command was given here; a
copy of the list proves nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from turnlog.layout import CREATED_HERE
from turnlog.log.digest import sha256
from turnlog.log.entry import Entry, Start
from turnlog.machine.environment import state_folder
from turnlog.machine.location import folder_of, is_shared, key_of

if TYPE_CHECKING:
    from turnlog.thread.history import History

_DIGITS = 32


def list_path(location: str | None, name: str) -> str:
    """The path of a list that is never copied with its home; "" if there is no place for one."""
    folder = None if location is None else folder_of(location)
    if folder is not None:
        return os.path.join(folder, name)
    if location is not None and is_shared(location) and state_folder():
        return os.path.join(state_folder(), name, key_of(location))
    return ""


class CreatedHere:
    """The list of one home. If it cannot be written or read, nothing is known, and people are asked."""

    def __init__(self, location: str | None) -> None:
        self.location = location
        """Where the home is; None if unknown."""
        self._path = list_path(location, CREATED_HERE)

    def note(self, start: Entry) -> None:
        """Record that the session with this first entry was created here."""
        if self._path and isinstance(start, Start):
            try:
                self._write(start.session_id, start.resume)
            except OSError:
                return  # creating a session must not fail because of the list

    def _write(self, session_id: str, command: Sequence[str]) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            from turnlog.interop.place import private_folders

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
        """Whether a session was created here, with this command."""
        if not self._path:
            return False
        try:
            with open(self._path, "rb") as file:
                status = os.fstat(file.fileno())
                return status.st_uid == os.geteuid() and _line(status, session_id, command) in file
        except OSError:
            return False

    def fork_is_created_here(self, history: History, fields: Mapping[str, Any]) -> bool:
        """Whether a fork with these fields counts as created here: not if it inherits an unknown command."""
        if "origin" in fields:
            return False  # another agent's session
        command = history.state.start.get("resume", ())
        return "resume" in fields or not command or self.knows(history.id, command)


def _line(status: os.stat_result, session_id: str, command: Sequence[str]) -> bytes:
    # The lengths make the text unambiguous: no two lists of words give the same one.
    text = "".join(f"{len(part)}:{part}" for part in (str(status.st_ino), session_id, *command))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS].encode() + b"\n"
