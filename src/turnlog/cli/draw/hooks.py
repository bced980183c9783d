"""Prints hooks of agents: which files were changed, and the state of the hooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping

from turnlog.cli.draw.fileedit import edit_lines, print_not_here
from turnlog.cli.draw.table import table
from turnlog.cli.frame.terminal import coloured
from turnlog.hooks import HookedAgent, hooked_agent, names
from turnlog.hooks.call import hook_command
from turnlog.hooks.entries import hook_entries
from turnlog.hooks.status import HookStatus, missing_events
from turnlog.hooks.trace import AgentTrace
from turnlog.machine.edit import FileEdit
from turnlog.machine.environment import usual_home
from turnlog.machine.settings import parse_settings
from turnlog.reader.agents.hookedhome import home_for_settings
from turnlog.reader.naming.here import tilde
from turnlog.view.time import ago
from turnlog.view.visible import one_line


def print_edits(
    action: str, agents: list[HookedAgent], edits: list[FileEdit], *, trusted: bool, dry_run: bool, in_project: bool
) -> None:
    """Print which files of each agent were changed, and what to do next."""
    for agent in agents:
        changed = [edit for edit in edits if edit.agent == agent.name and edit.is_change]
        nothing = "hooked already" if action == "install" else "not hooked"
        for line in edit_lines(agent.title, changed, nothing=nothing, dry_run=dry_run):
            print(line)
        for edit in edits if trusted and agent.trusts else ():
            for line in _trusted(agent, edit):
                print(coloured(f"  trusted: {line}", "dim", sys.stdout))
        if changed and not dry_run:
            print(coloured(f"  {_after(action, agent, trusted=trusted)}", "dim", sys.stdout))
        if changed and action == "install" and in_project and agent.project_needs:
            print(coloured(f"  {agent.project_needs}", "dim", sys.stdout))
    if action == "install" and not dry_run and any(edit.is_change for edit in edits):
        print("From the next turn on: `turnlog diff`, `turnlog rewind`. `turnlog hooks status` says how it goes.")


def _trusted(agent: HookedAgent, edit: FileEdit) -> Iterator[str]:
    """Yield the commands that the agent trusts after the edit, as it will run them."""
    if edit.after is not None and edit.path.endswith(agent.file.name):
        for entry in hook_entries(parse_settings(edit.after.decode(), syntax=agent.settings_file.syntax), agent):
            yield one_line(hook_command(entry.program, agent.name, entry.event, entry.home))


def _after(action: str, agent: HookedAgent, *, trusted: bool) -> str:
    if action == "uninstall" or (agent.trusts and trusted):
        return "takes effect when the agent is restarted"
    return agent.after


def print_statuses(
    rows: list[HookStatus], traces: Mapping[str, AgentTrace], location: str | None, *, space: list[str]
) -> None:
    """Print a table of the agents that are here, what is wrong with any, and the lines about `space` on the disk."""
    listed = [row for row in rows if row.is_here or row.installed]
    now = time.time()
    cells = [
        (hooked_agent(row.agent).title, _state(row), _last(traces.get(row.agent), now), tilde(row.path))
        for row in listed
    ]
    for line in table(("AGENT", "HOOKS", "LAST EVENT", "FILE"), cells):
        print(line)
    for row in listed:
        trace = traces.get(row.agent)
        less = None if trace is None else missing_events(hooked_agent(row.agent), trace.events)
        for problem in filter(None, (*_problems(row, home_for_settings(location)), less)):
            print(coloured(one_line(f"{hooked_agent(row.agent).title}: {problem}"), "yellow", sys.stdout))
    for line in failures(traces):
        print(coloured(line, "yellow", sys.stdout))
    for line in space:
        print(line)
    print_not_here(hooked_agent(row.agent).title for row in rows if row not in listed)


def failures(traces: Mapping[str, AgentTrace]) -> list[str]:
    """What went wrong last in the hooks of each agent, and what to do."""
    return [
        one_line(
            f"{hooked_agent(name).title if name in names() else name}: the last failure of a hook: {trace.last_error}"
        )
        for name, trace in traces.items()
        if trace.last_error
    ]


def _last(trace: AgentTrace | None, now: float) -> str:
    return "" if trace is None else f"{trace.last_event}, {ago(int(trace.last_at_s * 1000), now)}"


def _state(row: HookStatus) -> str:
    if not row.installed:
        return "no"
    where = " (project)" if row.scope == "project" else ""
    if row.blocked_by is not None:
        return f"switched off{where}"
    if row.trusted is False:
        return f"not trusted{where}"
    return f"yes{where}" if row.is_current else f"stale{where}"


def _problems(row: HookStatus, here: str) -> Iterator[str]:
    if row.blocked_by is not None:
        yield f"no hook runs: {row.blocked_by}"
    if not row.installed:
        return
    if row.trusted is False:
        yield "it does not run them until you trust them: type /hooks there, or `turnlog hooks install codex --trust`"
    if not row.is_current:
        yield f"they call {row.program}, which is gone or another version; `turnlog hooks install {row.agent}` mends it"
    if (row.fills or "") != here:
        where = tilde(row.fills or usual_home())
        yield f"its turns go to {where}; `turnlog hooks install {row.agent}` brings them here"
    if row.scope == "project" and hooked_agent(row.agent).project_needs:
        yield hooked_agent(row.agent).project_needs
