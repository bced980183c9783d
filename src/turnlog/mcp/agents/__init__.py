"""One file per agent: where its settings list servers, and in which form. The file's name is its registration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from turnlog.errors import NotFound
from turnlog.hooks import AgentFolder, HookedAgent, hooked_agent
from turnlog.interop.value import as_list
from turnlog.machine.settings.jsontext import JsonSyntax

Entry = dict[str, Any]
"""A server in the settings of an agent."""


class ServerAgent:
    """An agent whose settings can list a server. `hooked` has everything else about the agent."""

    def __init__(
        self,
        name: str,
        tried: str,
        *,
        folder: AgentFolder,
        files: tuple[str, ...],
        project: str | None,
        path: tuple[str, ...],
        syntax: JsonSyntax | None = "json",
        entry: Callable[[list[str], Mapping[str, str]], Entry],
        command: Callable[[Entry], list[Any]] = lambda entry: [entry.get("command"), *as_list(entry.get("args"))],
        tools: str,
    ) -> None:
        self.name = name
        self.tried = tried
        """The version that it was tried with; empty if it was only read in the documentation."""
        self.folder = folder
        self.files = files
        """The possible names of its settings file: the first that exists counts, or else the first."""
        self.project = project
        """The path of the file in the folder of a project; None if the agent has no such file."""
        self.path = path
        """The keys that lead to our entry; the first one is that of all servers."""
        self.syntax: JsonSyntax | None = syntax
        """The syntax of the file; None for TOML."""
        self.entry = entry
        """Returns the entry for a command and for variables that are added to the server's environment."""
        self.command = command
        """Returns the command of an entry, of whatever type its fields are."""
        self.tools = tools
        """The name under which a model sees `search_sessions`."""

    @property
    def hooked(self) -> HookedAgent:
        """The agent itself."""
        return hooked_agent(self.name)

    @property
    def title(self) -> str:
        """The name of the agent for people."""
        return self.hooked.title


def server_names() -> list[str]:
    """The names of all agents whose settings can list a server."""
    files = os.listdir(os.path.dirname(__file__))
    return sorted(name[:-3].replace("_", "-") for name in files if name.endswith(".py") and not name.startswith("_"))


@cache
def server_agent(name: str) -> ServerAgent:
    """The agent of that name."""
    if name not in server_names():
        hint = "pi has no MCP" if name == "pi" else f"one of {', '.join(server_names())}"
        raise NotFound(f"no settings for MCP servers are known of an agent {name!r:.80}", hint=hint)
    return import_module(f"{__name__}.{name.replace('-', '_')}").AGENT


def plain_entry(command: list[str], environ: Mapping[str, str]) -> Entry:
    """The entry in the form that most agents share."""
    entry: Entry = {"command": command[0], "args": command[1:]}
    return {**entry, "env": dict(environ)} if environ else entry
