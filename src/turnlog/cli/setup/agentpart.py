"""The parts of a setup that lie in the settings of agents and have commands of their own: hooks, and the MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from turnlog.cli.setup.part import SetupPart
from turnlog.machine.edit import FileEdit
from turnlog.reader.agents.hookedhome import hook_places, mark_hooks_seen
from turnlog.reader.naming.here import tilde

if TYPE_CHECKING:
    from turnlog.hooks.places import HookPlaces
    from turnlog.hooks.status import HookStatus
    from turnlog.mcp.install import ServerPlaces, ServerStatus


class AgentPart(SetupPart):
    """A part in the settings of agents, those of the user or of a project."""

    thing: str
    """How a sentence names it."""
    participle: str
    """How a sentence describes an agent that has it."""
    actions: ClassVar[Mapping[str, str]]
    """What is asked before each action, up to the file."""

    def __init__(self, location: str | None, *, anyway: bool = False, scope: str = "user") -> None:
        super().__init__(location, anyway=anyway)
        self.scope = scope
        """`user` or `project`."""

    def supported(self) -> list[str]:
        """Return every agent that can have it."""
        raise NotImplementedError

    def is_here(self, name: str) -> bool:
        """Whether an agent is on this machine."""
        raise NotImplementedError

    def file(self, name: str) -> str:
        """Return the file of an agent that has it, or would. Raises `Unsupported` if the agent has no such file."""
        raise NotImplementedError

    def has_project_file(self, name: str) -> bool:
        """Whether an agent can have it in the files of a project."""
        raise NotImplementedError

    def statuses(self) -> Sequence[HookStatus | ServerStatus]:
        """Return how it stands in the settings of each agent."""
        raise NotImplementedError

    def install(self, name: str) -> list[FileEdit]:
        """Return the changes of files after which an agent has it."""
        raise NotImplementedError

    def uninstall(self, name: str) -> list[FileEdit]:
        """Return the changes of files after which they are as they would be without it."""
        raise NotImplementedError

    def knows(self, name: str) -> bool:
        """See `SetupPart`."""
        return name in self.supported()

    def available(self) -> list[str]:
        """See `SetupPart`."""
        return [name for name in self.supported() if self.is_here(name)]

    def installed(self) -> list[str]:
        """Return the agents that have it, in whichever file."""
        return [row.agent for row in self.statuses() if row.installed]

    def question_about(self, action: str, name: str) -> str:
        """Return the question whether to install or uninstall it for an agent."""
        from turnlog.hooks import hooked_agent

        return f"{hooked_agent(name).title}: {self.actions[action]} {tilde(self.file(name))}?"

    def plan(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        return [edit for name in names for edit in self.install(name)]

    def plan_undo(self, names: Sequence[str]) -> list[FileEdit]:
        """See `SetupPart`."""
        return [edit for name in names for edit in self.uninstall(name)]


class HooksPart(AgentPart):
    """Hooks, by which agents report every turn."""

    name = "hooks"
    question = "Hooks, so that every turn can be inspected and taken back?"
    thing = "hooks"
    participle = "hooked"
    actions: ClassVar = {"install": "add hooks to", "uninstall": "take our hooks out of"}

    def __init__(
        self, location: str | None, *, anyway: bool = False, scope: str = "user", are_trusted: bool = False
    ) -> None:
        super().__init__(location, anyway=anyway, scope=scope)
        self._are_trusted = are_trusted
        """Whether an agent that would ask for trust is told that the hooks have it."""

    def supported(self) -> list[str]:
        """See `AgentPart`."""
        from turnlog.hooks import names

        return names()

    def is_here(self, name: str) -> bool:
        """See `AgentPart`."""
        from turnlog.hooks import hooked_agent

        return self._places.has(hooked_agent(name))

    def file(self, name: str) -> str:
        """See `AgentPart`."""
        from turnlog.hooks import hooked_agent

        return self._places.file(hooked_agent(name), self.scope)

    def has_project_file(self, name: str) -> bool:
        """See `AgentPart`."""
        from turnlog.hooks import hooked_agent

        return hooked_agent(name).file.project is not None

    def statuses(self) -> list[HookStatus]:
        """See `AgentPart`."""
        from turnlog.hooks.status import statuses

        return statuses(self._places)

    def install(self, name: str) -> list[FileEdit]:
        """See `AgentPart`."""
        from turnlog.hooks import hooked_agent
        from turnlog.hooks.install import plan_install

        return plan_install(hooked_agent(name), self._places, self.scope, self.program, trust=self._are_trusted)

    def uninstall(self, name: str) -> list[FileEdit]:
        """See `AgentPart`."""
        from turnlog.hooks import hooked_agent
        from turnlog.hooks.install import plan_uninstall

        return plan_uninstall(hooked_agent(name), self._places, self.scope)

    def notes(self, names: Sequence[str]) -> list[str]:
        """See `SetupPart`."""
        from turnlog.hooks import hooked_agent

        return [f"{hooked_agent(name).title}: {hooked_agent(name).after}" for name in names]

    def apply(self, names: Sequence[str]) -> None:
        """See `SetupPart`."""
        super().apply(names)
        mark_hooks_seen(self.location)

    @cached_property
    def _places(self) -> HookPlaces:
        return hook_places(self.location)


class ServerPart(AgentPart):
    """The MCP server, with which agents search and read what was said before."""

    name = "mcp"
    question = "The MCP server, so that they can search and read earlier sessions?"
    thing = "the server"
    participle = "given it"
    actions: ClassVar = {"install": "add turnlog to", "uninstall": "take turnlog out of"}

    def __init__(
        self,
        location: str | None,
        *,
        anyway: bool = False,
        scope: str = "user",
        options: Sequence[str] | None = None,
    ) -> None:
        super().__init__(location, anyway=anyway, scope=scope)
        self._options = options
        """What the server is started with; None for the options that are there already."""

    def supported(self) -> list[str]:
        """See `AgentPart`."""
        from turnlog.mcp.agents import server_names

        return server_names()

    def is_here(self, name: str) -> bool:
        """See `AgentPart`."""
        from turnlog.mcp.agents import server_agent

        return self._places.has(server_agent(name))

    def file(self, name: str) -> str:
        """See `AgentPart`."""
        from turnlog.mcp.agents import server_agent

        return self._places.file(server_agent(name), self.scope)

    def has_project_file(self, name: str) -> bool:
        """See `AgentPart`."""
        from turnlog.mcp.agents import server_agent

        return server_agent(name).project is not None

    def statuses(self) -> list[ServerStatus]:
        """See `AgentPart`."""
        from turnlog.mcp.install import server_statuses

        return server_statuses(self._places)

    def install(self, name: str) -> list[FileEdit]:
        """See `AgentPart`."""
        from turnlog.mcp.agents import server_agent
        from turnlog.mcp.install import installing

        return installing(server_agent(name), self._places, self.scope, self.program, self._options)

    def uninstall(self, name: str) -> list[FileEdit]:
        """See `AgentPart`."""
        from turnlog.mcp.agents import server_agent
        from turnlog.mcp.install import uninstalling

        return uninstalling(server_agent(name), self._places, self.scope)

    @cached_property
    def _places(self) -> ServerPlaces:
        from turnlog.mcp.install import server_places

        return server_places(self.location)
