"""`turnlog mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.cli.frame import shape
from turnlog.cli.frame.arguments import parsed
from turnlog.cli.frame.command import Argument, Command, Option, declare
from turnlog.cli.frame.exitcode import Misused
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.shape import DRY_RUN
from turnlog.errors import Invalid, NotFound

if TYPE_CHECKING:
    from turnlog.machine.edit import FileEdit
    from turnlog.mcp.agents import ServerAgent
    from turnlog.mcp.install import ServerPlaces

CHANGES = shape.OTHERS
FIELDS = {
    "action": shape.text("`install`, `uninstall` or `status`"),
    "dry_run": DRY_RUN,
    "agents": shape.items(
        "how each stands",
        {
            "agent": shape.text(),
            "is_here": shape.flag("whether the agent is installed"),
            "installed": shape.flag(),
            "path": shape.text("the file"),
            "scope": shape.text("`user` or `project`"),
            "program": shape.text("the program that is started", null=True),
            "arguments": shape.texts("its arguments"),
            "is_current": shape.flag("the program exists, and is this one"),
            "blocked_by": shape.text("why the agent cannot read the file", null=True),
        },
    ),
    "files": shape.each(
        "what was changed",
        {"agent": shape.text(), "path": shape.text(), "change": shape.text("`written` or `removed`")},
    ),
}
_ACTIONS = ("install", "uninstall", "status")
_SERVER = (
    Option("--workspace -w PATH", "Serve the sessions of that folder and its worktrees."),
    Option("--all -a", "Serve the sessions of every folder; to install: for every agent here.", name="everywhere"),
    Option("--allow-rewind", "Let the agent rewind sessions, each time with a plan that was shown before."),
)


@declare(
    Argument("words", "[install|uninstall|status] [AGENT]..."),
    *_SERVER,
    Option("--project", "To install: in this repository's files, not in the user's.", name="in_project"),
    Option("--dry-run -n", "To install: only show what would be changed."),
    Option("--anyway", "To install: also from a temporary environment."),
)
def command(
    *,
    words: tuple[str, ...],
    workspace: str | None,
    everywhere: bool,
    allow_rewind: bool,
    in_project: bool,
    dry_run: bool,
    anyway: bool,
    as_json: bool,
) -> None:
    """Give agents access to earlier sessions: a server of the Model Context Protocol.

    Without an action it serves on stdin and stdout; agents start it that way. Its tools search and read sessions, show
    what turns changed, which turn wrote a line, and what it cost. It only reads, shows only sessions of the folder it
    is started in and its worktrees, and redacts secrets. `install` adds it to the settings of an agent and changes
    nothing else; `uninstall` restores the files; `status` shows the state. Options after `--` are passed to the server.

    \b
    turnlog mcp install                      asks for each agent that is here
    turnlog mcp install claude-code codex    these two
    turnlog mcp install --all --dry-run      what it would change
    turnlog mcp install codex -- --all       and it may tell of every folder
    turnlog mcp uninstall --all              as if nothing had been
    """
    home = home_location()
    if not words:
        if in_project or dry_run or anyway or as_json:
            raise Invalid("--project, --dry-run, --anyway and --json are for install, uninstall and status")
        return _serve(home, workspace, everywhere=everywhere, allow_rewind=allow_rewind)
    action, named, options = _taken_apart(words)
    if workspace is not None or allow_rewind:
        raise Invalid("options of the server follow --", hint=f"turnlog mcp {action} AGENT -- --all")
    return _settings(
        action, named, options, home, everyone=everywhere, in_project=in_project, dry_run=dry_run, anyway=anyway,
        as_json=as_json,
    )  # fmt: skip


def _serve(home: str | None, workspace: str | None, *, everywhere: bool, allow_rewind: bool) -> None:
    if everywhere and workspace is not None:
        raise Invalid("--all is of every folder, --workspace of one", hint="leave one of them out")
    import os
    import sys

    from turnlog.machine.folder import expand
    from turnlog.mcp.server import ServerSettings, serve

    if workspace is not None:
        from pathlib import Path

        if not Path(expand(workspace)).is_dir():
            raise NotFound(f"there is no folder {workspace}", hint="--workspace takes one that is there")
    if os.isatty(0):
        print("waiting for an agent to ask on stdin; `turnlog mcp install` gives it to one", file=sys.stderr)
    serve(ServerSettings(home, workspace, everywhere=everywhere, allow_rewind=allow_rewind))


def _taken_apart(words: tuple[str, ...]) -> tuple[str, tuple[str, ...], list[str] | None]:
    """What to do, for whom, and what the server is to be started with: that stood behind `--`."""
    action = words[0]
    if action not in _ACTIONS:
        raise Invalid(f"no action {action!r:.40}", hint=f"one of {', '.join(_ACTIONS)}; alone, it serves an agent")
    first = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    options = list(words[first:])
    try:
        parsed(Command(command.module, command.run, _SERVER, command.path), options)
    except Misused as error:
        raise Invalid(f"behind --: {error.message}", hint="--all, --workspace PATH or --allow-rewind") from None
    return action, words[1:first], options or None


def _settings(
    action: str, named: tuple[str, ...], options: list[str] | None, home: str | None, *, everyone: bool,
    in_project: bool, dry_run: bool, anyway: bool, as_json: bool,
) -> None:  # fmt: skip
    from turnlog.cli.draw.mcp import print_server_edits, print_server_statuses
    from turnlog.cli.frame.answer import print_json
    from turnlog.machine.edit import make_edit
    from turnlog.mcp.install import server_places, server_statuses

    places = server_places(home)
    edits: list[FileEdit] = []
    chosen: list[ServerAgent] = []
    if action != "status":
        from turnlog.machine.launcher import launcher, this_launcher

        program = this_launcher() if anyway or action == "uninstall" else launcher("mcp install")  # before it asks
        chosen = _chosen(action, named, places, everyone=everyone, as_json=as_json)
        edits = _edits(action, chosen, places, "project" if in_project else "user", options, program)
        if action == "uninstall" and not dry_run:
            from turnlog.cli.frame.agentshell import refuse_agent

            refuse_agent("`mcp uninstall`")
        for edit in edits if not dry_run else ():
            make_edit(edit, places.imprints)
    elif named or everyone:
        raise Invalid("`turnlog mcp status` is about all agents", hint="`turnlog mcp install AGENT` is about one")
    if as_json:
        rows: list[dict[str, Any]] = [
            {**row._asdict(), "arguments": list(row.arguments)} for row in server_statuses(places)
        ]
        files = [
            {"agent": edit.agent, "path": edit.path, "change": "removed" if edit.after is None else "written"}
            for edit in edits
            if edit.is_change
        ]
        print_json({"action": action, "dry_run": dry_run, "agents": rows, "files": files})
    elif action == "status":
        print_server_statuses(server_statuses(places))
    else:
        print_server_edits(action, chosen, edits, dry_run=dry_run)


def _edits(
    action: str, chosen: list[ServerAgent], places: ServerPlaces, scope: str, options: list[str] | None, program: str
) -> list[FileEdit]:
    from turnlog.mcp.install import installing, uninstalling

    if action == "uninstall":
        return [edit for one in chosen for edit in uninstalling(one, places, scope)]
    return [edit for one in chosen for edit in installing(one, places, scope, program, options)]


def _chosen(
    action: str, named: tuple[str, ...], places: ServerPlaces, *, everyone: bool, as_json: bool
) -> list[ServerAgent]:
    from turnlog.cli.pick.agent import AgentChoice
    from turnlog.mcp.agents import server_agent, server_names
    from turnlog.mcp.install import server_statuses
    from turnlog.reader.folder import tilde

    def question(name: str) -> str:
        one = server_agent(name)
        where = tilde(places.file(one, "user"))
        return f"{one.title}: {f'add turnlog to {where}' if action == 'install' else f'take turnlog out of {where}'}?"

    if action == "install":
        there = [name for name in server_names() if places.has(server_agent(name))]
    else:
        there = [row.agent for row in server_statuses(places) if row.installed]
    choice = AgentChoice(action, "the server", "given it", server_names(), there)
    return [server_agent(name) for name in choice.chosen(named, question, everyone=everyone, as_json=as_json)]
