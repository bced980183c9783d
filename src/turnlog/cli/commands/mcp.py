"""`turnlog mcp`."""

from __future__ import annotations

from typing import Any

from turnlog.cli.fields.agentfile import part_fields
from turnlog.cli.frame.arguments import parsed
from turnlog.cli.frame.command import Argument, Command, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import tell
from turnlog.errors import Invalid, NotFound

GROUP = "Find", 13
CHANGES = shape.OTHERS
FIELDS = part_fields(
    {
        "program": shape.text("the program that is started", null=True),
        "arguments": shape.texts("its arguments"),
        "is_current": shape.flag("the program exists, and is this one"),
        "blocked_by": shape.text("why the agent cannot read the file", null=True),
    }
)
_ACTIONS = ("install", "uninstall", "status")
_SERVER = (
    Option("--workspace -w PATH", "Serve the sessions of that folder and its worktrees.", kind="folder"),
    Option("--all -a", "Serve the sessions of every folder; to install: for every agent here.", name="everywhere"),
    Option("--allow-rewind", "Let the agent rewind sessions, each time with a plan that was shown before."),
)


_EXCLUSIVE = (("--all", "--workspace"),)


@declare(
    Argument("words", "[install|uninstall|status] [AGENT]...", kind="action agent"),
    *_SERVER,
    Option("--project", "To install: in this repository's files, not in the user's.", name="in_project"),
    Option("--dry-run -n", "To install: only show what would be changed."),
    Option("--anyway", "To install: also from a temporary environment."),
    is_read_only=lambda options: options["dry_run"] or options["words"][:1] == ("status",),
    exclusive=_EXCLUSIVE,
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
    """Give agents access to earlier sessions. It is a server of the Model Context Protocol.

    Without an action it serves on stdin and stdout; agents start it that way. Its tools search and read sessions, show
    what turns changed, which turn wrote a line, and what it cost. It only reads, shows only sessions of the folder it
    is started in and its worktrees, and redacts secrets. `install` adds it to the settings of an agent and changes
    nothing else; `uninstall` restores the files; `status` shows the state. Options after `--` are passed to the server.

    \b
    turnlog mcp install                      asks for each agent that is here
    turnlog mcp install claude-code codex    these two
    turnlog mcp install --all --dry-run      what it would change
    turnlog mcp install codex -- --all       and serve every folder
    turnlog mcp uninstall --all              restore the settings
    """
    home = home_location()
    if not words:
        if in_project or dry_run or anyway or as_json:
            raise Invalid("--project, --dry-run, --anyway and --json are for install, uninstall and status")
        _serve(home, workspace, everywhere=everywhere, allow_rewind=allow_rewind)
        return
    action, named, options = _split_words(words, in_project=in_project)
    if workspace is not None or allow_rewind:
        raise Invalid("options of the server follow --", hint=f"turnlog mcp {action} AGENT -- --all")
    from turnlog.cli.draw.mcp import print_server_edits, print_server_statuses
    from turnlog.cli.setup.agentpart import ServerPart
    from turnlog.cli.setup.single import PartRequest, change_settings, print_change_json
    from turnlog.mcp.agents import server_agent

    part = ServerPart(home, anyway=anyway, scope="project" if in_project else "user", options=options)
    request = PartRequest(action, named, everywhere, dry_run, as_json)
    change = change_settings(part, request)
    if as_json:
        rows = [{**row._asdict(), "arguments": list(row.arguments)} for row in part.statuses()]
        print_change_json(request, change, rows)
    elif action == "status":
        print_server_statuses(part.statuses())
    else:
        print_server_edits(action, list(map(server_agent, change.agents)), change.edits, dry_run=dry_run)


def _serve(home: str | None, workspace: str | None, *, everywhere: bool, allow_rewind: bool) -> None:
    import os

    from turnlog.mcp.server import ServerSettings, serve

    _refuse_no_folder(workspace)
    if os.isatty(0):
        tell("waiting for an agent to ask on stdin; `turnlog mcp install` gives it to one")
    serve(ServerSettings(home, workspace, everywhere=everywhere, allow_rewind=allow_rewind))


def _refuse_no_folder(workspace: str | None) -> None:
    """Raise `NotFound` for a folder that is not there: a server does not start with it."""
    if workspace is None:
        return
    from pathlib import Path

    from turnlog.machine.folder import expand

    if not Path(expand(workspace)).is_dir():
        raise NotFound(f"there is no folder {workspace}", hint="--workspace takes one that is there")


def _split_words(words: tuple[str, ...], *, in_project: bool) -> tuple[str, tuple[str, ...], list[str] | None]:
    """Return what to do, for which agents, and the options of the server, which stood behind `--`."""
    action = words[0]
    if action not in _ACTIONS:
        raise Invalid(f"no action {action!r:.40}", hint=f"one of {', '.join(_ACTIONS)}; alone, it serves an agent")
    first = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    options = list(words[first:])
    if options and action != "install":
        raise Invalid("options of the server are for install", hint=f"leave out what follows: turnlog mcp {action}")
    try:
        values = parsed(Command(command.module, command.run, _SERVER, command.path, exclusive=_EXCLUSIVE), options)
    except UsageError as error:
        raise Invalid(f"behind --: {error.message}", hint="--all, --workspace PATH or --allow-rewind") from None
    _refuse_no_folder(values["workspace"])
    return action, words[1:first], (_server_options(values, options, in_project=in_project) if options else None)


def _server_options(values: dict[str, Any], typed: list[str], *, in_project: bool) -> list[str]:
    """Return the options with which an agent starts the server.

    Settings of the user hold in every folder, so they name a folder from the root. Those of a project are shared: there
    a folder stays as it was typed.
    """
    workspace = values["workspace"]
    if workspace is None or in_project:
        return typed
    from turnlog.machine.folder import absolute

    return ["--workspace", absolute(workspace), *(["--allow-rewind"] if values["allow_rewind"] else [])]
