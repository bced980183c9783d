"""One part for single agents: what `turnlog hooks` and `turnlog mcp` do with `install`, `uninstall` and `status`."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnlog.cli.fields.agentfile import json_edit
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.pick.agent import AgentChoice
from turnlog.cli.setup.agentpart import AgentPart
from turnlog.errors import Invalid
from turnlog.machine.edit import FileEdit, make_edit


class PartRequest(NamedTuple):
    """What is to be done with a part, and for which agents."""

    action: str
    """`install`, `uninstall` or `status`."""
    named: tuple[str, ...]
    everyone: bool
    dry_run: bool
    as_json: bool


class PartChange(NamedTuple):
    """The agents that were meant, and what was changed for them, or would be."""

    agents: list[str]
    edits: list[FileEdit]


def change_settings(part: AgentPart, request: PartRequest) -> PartChange:
    """Install a part for agents or uninstall it. All changes are planned before any file is changed."""
    action = request.action
    if action == "status":
        if request.named or request.everyone:
            hint = f"`turnlog {part.name} install AGENT` is about one"
            raise Invalid(f"`turnlog {part.name} status` is about all agents", hint=hint)
        return PartChange([], [])
    if action == "uninstall" and not request.dry_run:
        refuse_agent(f"{part.name} uninstall")
    if action == "install":
        part.installs_with = f"{part.name} install"
        _ = part.program  # a temporary environment is refused before anything is asked
    agents = _chosen(part, request)
    edits = part.plan(agents) if action == "install" else part.plan_undo(agents)
    for edit in edits if not request.dry_run else ():
        make_edit(edit, part.imprints)
    return PartChange(agents, edits)


def _chosen(part: AgentPart, request: PartRequest) -> list[str]:
    candidates = part.available() if request.action == "install" else part.installed()
    if part.scope == "project" and not request.everyone:  # an agent without a file for it is not offered one
        candidates = [name for name in candidates if part.has_project_file(name)]
    choice = AgentChoice(
        action=request.action,
        thing=part.thing,
        participle=part.participle,
        supported=part.supported(),
        candidates=candidates,
    )
    return choice.chosen(
        request.named,
        lambda name: part.question_about(request.action, name),
        everyone=request.everyone,
        as_json=request.as_json,
    )


def print_change_json(request: PartRequest, change: PartChange, agents: list[dict[str, Any]]) -> None:
    """Print what was done as JSON, with how the part stands in the settings of `agents` now."""
    files = [json_edit(edit) for edit in change.edits if edit.is_change]
    print_json({"action": request.action, "dry_run": request.dry_run, "agents": agents, "files": files})
