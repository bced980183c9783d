"""The hooks of an agent in one file, as installing and status need them: the same for every kind of file."""

from __future__ import annotations

from typing import Protocol

from turnlog.log.startup import NamedTuple
from turnlog.machine.edit import FileEdit


class InstalledHooks(NamedTuple):
    """The hooks of ours that a file has."""

    program: str | None = None
    """The program that they call; None if there are none."""
    home: str = ""
    """The home that they write to; empty for the default one."""
    is_current: bool = False
    """Whether they are exactly as this version writes them."""
    trusted: bool | None = None
    """Whether the user trusts them; None if the agent does not ask."""
    refusal: str | None = None
    """Why the agent ignores the file, although it can be parsed."""


class FileHooks(Protocol):
    """Our hooks of one agent in one file."""

    path: str

    def plan_install(self, program: str, *, trust: bool) -> list[FileEdit]:
        """The edits after which the agent calls the program."""
        ...

    def plan_uninstall(self) -> list[FileEdit]:
        """The edits after which the files are as they would be without us."""
        ...

    def installed(self) -> InstalledHooks:
        """The hooks that the file has now. Raises if it cannot be read or parsed."""
        ...
