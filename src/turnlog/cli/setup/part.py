"""The parts of a setup: their common class, hooks, and the MCP server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from turnlog.machine.edit import FileEdit, make_edit
from turnlog.machine.imprint import Imprints
from turnlog.machine.launcher import launcher, this_launcher
from turnlog.reader.agents.hookedhome import hook_places, imprints, mark_hooks_seen

if TYPE_CHECKING:
    from turnlog.mcp.install import ServerPlaces


class SetupPart:
    """Something that can be set up for agents, and taken back."""

    name: str
    question: str
    is_for_agents = True
    """Whether it is set up for each agent. Otherwise it is set up once, for the shell."""

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
        return this_launcher() if self._anyway else launcher("setup")

    def available(self) -> list[str]:
        """Return what it can be set up for on this machine: names of agents, or of a shell."""
        raise NotImplementedError

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


class HooksPart(SetupPart):
    """Hooks, by which agents report every turn."""

    name = "hooks"
    question = "Hooks, so that every turn can be inspected and taken back?"

    def available(self) -> list[str]:
        """See `SetupPart`."""
        from turnlog.hooks import hooked_agent, names

        places = hook_places(self.location)
        return [name for name in names() if places.has(hooked_agent(name))]

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.hooks import hooked_agent
        from turnlog.hooks.install import plan_install

        places = hook_places(self.location)
        return [
            edit
            for name in names
            for edit in plan_install(hooked_agent(name), places, "user", self.program, trust=False)
        ]

    def plan_undo(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.hooks import hooked_agent
        from turnlog.hooks.install import plan_uninstall

        places = hook_places(self.location)
        return [edit for name in names for edit in plan_uninstall(hooked_agent(name), places, "user")]

    def notes(self, names: Sequence[str]) -> list[str]:
        """See `SetupPart`."""
        from turnlog.hooks import hooked_agent

        return [f"{hooked_agent(name).title}: {hooked_agent(name).after}" for name in names]

    def apply(self, names: Sequence[str]) -> None:
        """See `SetupPart`."""
        super().apply(names)
        mark_hooks_seen(self.location)


class ServerPart(SetupPart):
    """Agents can search and read what was said before."""

    name = "mcp"
    question = "The MCP server, so that they can search and read earlier sessions?"

    def available(self) -> list[str]:
        """See `SetupPart`."""
        from turnlog.mcp.agents import server_agent, server_names

        return [name for name in server_names() if self._places.has(server_agent(name))]

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.mcp.agents import server_agent
        from turnlog.mcp.install import installing

        return [edit for name in names for edit in installing(server_agent(name), self._places, "user", self.program)]

    def plan_undo(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.mcp.agents import server_agent
        from turnlog.mcp.install import uninstalling

        return [edit for name in names for edit in uninstalling(server_agent(name), self._places, "user")]

    @cached_property
    def _places(self) -> ServerPlaces:
        from turnlog.mcp.install import server_places

        return server_places(self.location)
