"""One file per agent: where it is told of servers, and in which words. Its name is its registration."""

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
"""A server, as the settings of an agent have it."""


class ServerAgent:
    """An agent that can be given a server. What else is known of it is known with its hooks."""

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
        """The version that it was tried with; empty where only its documentation says it."""
        self.folder = folder
        self.files = files
        """The names of its file: the first that is there, else the first."""
        self.project = project
        """In the folder of a project; None where the agent has no such file."""
        self.path = path
        """The keys under which servers stand, and ours."""
        self.syntax: JsonSyntax | None = syntax
        """None for TOML."""
        self.entry = entry
        """How it is told: the command, and what the server's environment has besides."""
        self.command = command
        """The command of an entry, whatever that holds."""
        self.tools = tools
        """What a model sees in the place of `search_sessions`."""

    @property
    def hooked(self) -> HookedAgent:
        """The agent itself."""
        return hooked_agent(self.name)

    @property
    def title(self) -> str:
        """As people call it."""
        return self.hooked.title


def server_names() -> list[str]:
    """Every agent that can be given a server."""
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
    """As most of them have it."""
    entry: Entry = {"command": command[0], "args": command[1:]}
    return {**entry, "env": dict(environ)} if environ else entry
