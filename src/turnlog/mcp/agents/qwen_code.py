"""Qwen Code: in its settings, which may have comments."""

from __future__ import annotations

from turnlog.hooks import AgentFolder
from turnlog.mcp.agents import ServerAgent, plain_entry

AGENT = ServerAgent(
    "qwen-code",
    "",
    folder=AgentFolder(".qwen", "QWEN_HOME"),
    files=("settings.json",),
    project=".qwen/settings.json",
    path=("mcpServers", "turnlog"),
    syntax="commented",
    entry=plain_entry,
    tools="mcp__turnlog__search_sessions",
)
