"""The MCP server in the settings of agents: `turnlog mcp install`, `uninstall` and `status`."""

from __future__ import annotations

from typing import NamedTuple

from turnlog.cli.draw.mcp import print_server_edits, print_server_statuses
from turnlog.cli.fields.agentfile import json_edit
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.pick.agent import AgentChoice
from turnlog.errors import Invalid
from turnlog.machine.edit import FileEdit, make_edit
from turnlog.machine.launcher import launcher, this_launcher
from turnlog.mcp.agents import ServerAgent, server_agent, server_names
from turnlog.mcp.install import ServerPlaces, installing, server_places, server_statuses, uninstalling
from turnlog.reader.naming.here import tilde


class ServerRequest(NamedTuple):
    """What is to be done, for which agents, and in which of their files."""

    action: str
    """`install`, `uninstall` or `status`."""
    named: tuple[str, ...]
    options: list[str] | None
    """The words with which the server is to be started."""
    scope: str
    """`user` or `project`."""
    everyone: bool
    dry_run: bool
    anyway: bool
    as_json: bool


def change_settings(request: ServerRequest, home: str | None) -> None:
    """Add the server to the settings of agents or remove it, and print the files; or print its state."""
    places = server_places(home)
    edits: list[FileEdit] = []
    chosen: list[ServerAgent] = []
    if request.action == "uninstall" and not request.dry_run:
        refuse_agent("mcp uninstall")
    if request.action != "status":
        is_free = request.anyway or request.action == "uninstall"
        program = this_launcher() if is_free else launcher("mcp install")  # before it asks
        chosen = _chosen(request, places)
        edits = _planned(request, chosen, places, program)
        for edit in edits if not request.dry_run else ():
            make_edit(edit, places.imprints)
    elif request.named or request.everyone:
        raise Invalid("`turnlog mcp status` is about all agents", hint="`turnlog mcp install AGENT` is about one")
    if request.as_json:
        rows = [{**row._asdict(), "arguments": list(row.arguments)} for row in server_statuses(places)]
        files = [json_edit(edit) for edit in edits if edit.is_change]
        print_json({"action": request.action, "dry_run": request.dry_run, "agents": rows, "files": files})
    elif request.action == "status":
        print_server_statuses(server_statuses(places))
    else:
        print_server_edits(request.action, chosen, edits, dry_run=request.dry_run)


def _planned(request: ServerRequest, chosen: list[ServerAgent], places: ServerPlaces, program: str) -> list[FileEdit]:
    if request.action == "uninstall":
        return [edit for agent in chosen for edit in uninstalling(agent, places, request.scope)]
    return [edit for agent in chosen for edit in installing(agent, places, request.scope, program, request.options)]


def _chosen(request: ServerRequest, places: ServerPlaces) -> list[ServerAgent]:
    def question(name: str) -> str:
        agent = server_agent(name)
        where = tilde(places.file(agent, request.scope))
        does = f"add turnlog to {where}" if request.action == "install" else f"take turnlog out of {where}"
        return f"{agent.title}: {does}?"

    if request.action == "install":
        candidates = [name for name in server_names() if places.has(server_agent(name))]
    else:
        candidates = [row.agent for row in server_statuses(places) if row.installed]
    if request.scope == "project" and not request.everyone:  # what has no servers of a project is not offered one
        candidates = [name for name in candidates if server_agent(name).project is not None]
    choice = AgentChoice(
        action=request.action,
        thing="the server",
        participle="given it",
        supported=server_names(),
        candidates=candidates,
    )
    names = choice.chosen(request.named, question, everyone=request.everyone, as_json=request.as_json)
    return [server_agent(name) for name in names]
