"""opencode: in its configuration, which may have comments; the command and its arguments are one list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnlog.hooks import AgentFolder
from turnlog.interop.value import as_list
from turnlog.mcp.agents import ServerAgent


def _entry(command: list[str], environ: Mapping[str, str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "local", "command": command, "enabled": True}
    return {**entry, "environment": dict(environ)} if environ else entry


AGENT = ServerAgent(
    "opencode",
    "1.18.33",
    folder=AgentFolder(".config", "XDG_CONFIG_HOME", "opencode"),
    files=("opencode.json", "opencode.jsonc"),
    project="opencode.json",
    path=("mcp", "turnlog"),
    syntax="jsonc",
    entry=_entry,
    command=lambda entry: as_list(entry.get("command")),
    tools="turnlog_search_sessions",
)
