"""Gemini CLI: in its settings, which may have comments."""

from __future__ import annotations

from turnlog.hooks import AgentFolder
from turnlog.mcp.agents import ServerAgent, plain_entry

AGENT = ServerAgent(
    "gemini-cli",
    "0.61.0",
    folder=AgentFolder("", "GEMINI_CLI_HOME", ".gemini"),
    files=("settings.json",),
    project=".gemini/settings.json",
    path=("mcpServers", "turnlog"),
    syntax="commented",
    entry=plain_entry,
    tools="mcp_turnlog_search_sessions",
)
