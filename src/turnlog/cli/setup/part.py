"""A part of a setup, and those that put something into the settings of agents: hooks, and the server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from turnlog.machine.edit import FileEdit, make_edit
from turnlog.machine.imprint import Imprints
from turnlog.machine.launcher import launcher, this_launcher
from turnlog.reader.hooking import hook_places, imprints, see_hooks

if TYPE_CHECKING:
    from turnlog.mcp.install import ServerPlaces


class SetupPart:
    """Something that can be set up for agents, and taken back."""

    name: str
    question: str
    is_for_agents = True
    """Else there is only one of it on a machine."""

    def __init__(self, location: str | None, *, anyway: bool = False) -> None:
        self.location = location
        self._anyway = anyway

    @cached_property
    def imprints(self) -> Imprints:
        """What is remembered of the files that it changed."""
        return imprints(self.location, self.name)

    @cached_property
    def program(self) -> str:
        """What agents are told to start. Raises `Unsupported` where that may be gone tomorrow."""
        return this_launcher() if self._anyway else launcher("setup")

    def here(self) -> list[str]:
        """What it can be set up for on this machine: names of agents, or of a shell."""
        raise NotImplementedError

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """What has to be changed for these."""
        raise NotImplementedError

    def plan_back(self, names: Sequence[str]) -> list[FileEdit]:
        """What has to be changed so that their files are as they would be without us."""
        raise NotImplementedError

    def fresh(self, names: Sequence[str]) -> list[str]:
        """Those that do not have it yet: what was there before us is not ours to take back."""
        changed = {edit.agent for edit in self.plan(names) if edit.is_change}
        return [name for name in names if name in changed]

    def notes(self, names: Sequence[str]) -> list[str]:
        """What else is done for these, or has to be by somebody, in words."""
        return []

    def make(self, names: Sequence[str]) -> None:
        """Do it. Planned anew: another part may have changed the same file meanwhile."""
        for edit in self.plan(names):
            make_edit(edit, self.imprints)

    def take_back(self, names: Sequence[str]) -> None:
        """Undo it."""
        for edit in self.plan_back(names):
            make_edit(edit, self.imprints)


class HooksPart(SetupPart):
    """Agents report every turn."""

    name = "hooks"
    question = "Hooks, so that every turn can be inspected and taken back?"

    def here(self) -> list[str]:
        """See `SetupPart`."""
        from turnlog.hooks import agent, names

        places = hook_places(self.location)
        return [name for name in names() if places.has(agent(name))]

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.hooks import agent
        from turnlog.hooks.install import installing

        places = hook_places(self.location)
        return [edit for name in names for edit in installing(agent(name), places, "user", self.program, trust=False)]

    def plan_back(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.hooks import agent
        from turnlog.hooks.install import uninstalling

        places = hook_places(self.location)
        return [edit for name in names for edit in uninstalling(agent(name), places, "user")]

    def notes(self, names: Sequence[str]) -> list[str]:
        """See `SetupPart`."""
        from turnlog.hooks import agent

        return [f"{agent(name).title}: {agent(name).after}" for name in names]

    def make(self, names: Sequence[str]) -> None:
        """See `SetupPart`."""
        super().make(names)
        see_hooks(self.location)


class ServerPart(SetupPart):
    """Agents can search and read what was said before."""

    name = "mcp"
    question = "The MCP server, so that they can search and read earlier sessions?"

    def here(self) -> list[str]:
        """See `SetupPart`."""
        from turnlog.mcp.agents import server_agent, server_names

        return [name for name in server_names() if self._places.has(server_agent(name))]

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.mcp.agents import server_agent
        from turnlog.mcp.install import installing

        return [edit for name in names for edit in installing(server_agent(name), self._places, "user", self.program)]

    def plan_back(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        from turnlog.mcp.agents import server_agent
        from turnlog.mcp.install import uninstalling

        return [edit for name in names for edit in uninstalling(server_agent(name), self._places, "user")]

    @cached_property
    def _places(self) -> ServerPlaces:
        from turnlog.mcp.install import server_places

        return server_places(self.location)
