"""Prints the MCP server in the settings of agents: which files were changed, and its state."""

from __future__ import annotations

import sys

from turnlog.cli.draw.fileedit import edit_lines, print_not_here
from turnlog.cli.draw.table import table
from turnlog.cli.frame.terminal import coloured
from turnlog.machine.edit import FileEdit
from turnlog.mcp.agents import ServerAgent, server_agent
from turnlog.mcp.install import ServerStatus
from turnlog.reader.naming.here import tilde
from turnlog.view.visible import one_line


def print_server_edits(action: str, agents: list[ServerAgent], edits: list[FileEdit], *, dry_run: bool) -> None:
    """Print which files of each agent were changed, and what to do next."""
    for agent in agents:
        changed = [edit for edit in edits if edit.agent == agent.name and edit.is_change]
        nothing = "has it already" if action == "install" else "does not have it"
        for line in edit_lines(agent.title, changed, nothing=nothing, dry_run=dry_run):
            print(line)
        if changed and not dry_run:
            tools = f"; its model sees {agent.tools} and others" if action == "install" else ""
            print(coloured(f"  restart it{tools}", "dim", sys.stdout))
    if action == "install" and not dry_run and any(edit.is_change for edit in edits):
        print('Try it there: "what did we do about this before? search our old sessions"')


def print_server_statuses(rows: list[ServerStatus]) -> None:
    """Print a table of the agents that are here, and what is wrong with any."""
    listed = [row for row in rows if row.is_here or row.installed]
    cells = [
        (server_agent(row.agent).title, _state(row), " ".join(row.arguments[1:]), tilde(row.path)) for row in listed
    ]
    for line in table(("AGENT", "MCP", "WITH", "FILE"), cells):
        print(line)
    for row in listed:
        problem = _problem(row)
        if problem:
            print(coloured(one_line(f"{server_agent(row.agent).title}: {problem}"), "yellow", sys.stdout))
    print_not_here(server_agent(row.agent).title for row in rows if row not in listed)


def _state(row: ServerStatus) -> str:
    if not row.installed:
        return "no"
    where = " (project)" if row.scope == "project" else ""
    return f"{'yes' if row.is_current else 'stale'}{where}"


def _problem(row: ServerStatus) -> str:
    if row.blocked_by is not None:
        return f"its file cannot be read: {row.blocked_by}"
    if row.installed and not row.is_current:
        return f"it starts {row.program}, which is gone or another; `turnlog mcp install {row.agent}` mends it"
    return ""
