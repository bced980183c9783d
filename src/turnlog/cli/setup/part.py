"""What is common to the parts of a setup."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from turnlog.machine.edit import FileEdit, make_edit
from turnlog.machine.imprint import Imprints
from turnlog.machine.launcher import launcher, this_launcher
from turnlog.reader.agents.hookedhome import imprints


class SetupPart:
    """Something that can be set up for agents, and taken back."""

    name: str
    question: str
    is_for_agents = True
    """Whether it is set up for each agent. Otherwise it is set up once, for the shell."""
    installs_with = "setup"
    """The command that was typed, for the hint if this installation is not permanent."""

    def __init__(self, location: str | None, *, anyway: bool = False) -> None:
        self.location = location
        self._anyway = anyway

    @cached_property
    def imprints(self) -> Imprints:
        """What is remembered of the files that it changed."""
        return imprints(self.location, self.name)

    @cached_property
    def program(self) -> str:
        """The program that agents start. Raises `Unsupported` if it lies in a temporary environment."""
        return this_launcher() if self._anyway else launcher(self.installs_with)

    def available(self) -> list[str]:
        """Return what it can be set up for on this machine: names of agents, or of a shell."""
        raise NotImplementedError

    def knows(self, name: str) -> bool:
        """Whether this version can take it back for that name, which may be from the record of another version."""
        return True

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """Return the changes of files that set it up for these names."""
        raise NotImplementedError

    def plan_undo(self, names: Sequence[str]) -> list[FileEdit]:
        """Return the changes of files that restore them, except for what others changed since."""
        raise NotImplementedError

    def not_set_up(self, names: Sequence[str]) -> list[str]:
        """Return those that do not have it yet. Only these are recorded, and taken back by `--undo`."""
        changed = {edit.agent for edit in self.plan(names) if edit.is_change}
        return [name for name in names if name in changed]

    def notes(self, names: Sequence[str]) -> list[str]:
        """Return in words what else is done for these, or has to be done by the user."""
        return []

    def apply(self, names: Sequence[str]) -> None:
        """Set it up. Planned anew: another part may have changed the same file meanwhile."""
        for edit in self.plan(names):
            make_edit(edit, self.imprints)

    def undo(self, names: Sequence[str]) -> None:
        """Take it back for these names."""
        for edit in self.plan_undo(names):
            make_edit(edit, self.imprints)
