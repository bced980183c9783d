"""Copilot CLI: in a file for servers alone."""

from __future__ import annotations

from turnlog.hooks import AgentFolder
from turnlog.mcp.agents import ServerAgent, plain_entry

AGENT = ServerAgent(
    "copilot-cli",
    "",
    folder=AgentFolder(".copilot", "COPILOT_HOME"),
    files=("mcp-config.json",),
    project=None,
    path=("mcpServers", "turnlog"),
    entry=lambda command, environ: {"type": "local", **plain_entry(command, environ), "tools": ["*"]},
    tools="turnlog-search_sessions",
)
