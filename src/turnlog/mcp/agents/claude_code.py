"""Claude Code: in its own file in the home folder, which it writes all the time; or in `.mcp.json` of a project."""

from __future__ import annotations

from turnlog.hooks import AgentFolder
from turnlog.mcp.agents import ServerAgent, plain_entry

AGENT = ServerAgent(
    "claude-code",
    "2.1.197, 2.1.325",
    folder=AgentFolder("", "CLAUDE_CONFIG_DIR"),
    files=(".claude.json",),
    project=".mcp.json",
    path=("mcpServers", "turnlog"),
    entry=lambda command, environ: {"type": "stdio", **plain_entry(command, environ)},
    tools="mcp__turnlog__search_sessions",
)
