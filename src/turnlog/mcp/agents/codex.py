"""Codex: a table in its configuration. A server gets little of its environment, and is told what else to take."""

from __future__ import annotations

from turnlog.hooks import AgentFolder
from turnlog.mcp.agents import ServerAgent, plain_entry

_PASSED_ON = [
    "TURNLOG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CODEX_HOME",
    "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR",
]  # fmt: skip
"""What says where sessions lie."""

AGENT = ServerAgent(
    "codex",
    "0.166.0",
    folder=AgentFolder(".codex", "CODEX_HOME"),
    files=("config.toml",),
    project=".codex/config.toml",
    path=("mcp_servers", "turnlog"),
    syntax=None,
    entry=lambda command, environ: {
        **plain_entry(command, environ),
        "env_vars": [name for name in _PASSED_ON if name not in environ],
    },
    tools="mcp__turnlog, search_sessions in it",
)
