"""`turnlog hooks`."""

from __future__ import annotations

from turnlog.cli.draw.hooks import print_edits, print_statuses
from turnlog.cli.fields.agentfile import json_hook_status, part_fields
from turnlog.cli.frame.command import DRY_RUN_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.home import home_location
from turnlog.cli.overview.diskspace import space_lines
from turnlog.cli.setup.agentpart import HooksPart
from turnlog.cli.setup.single import PartRequest, change_settings, print_change_json
from turnlog.hooks import hooked_agent
from turnlog.reader.agents.hookedhome import last_hook_events, mark_hooks_seen

GROUP = "Safety net", 2
CHANGES = shape.OTHERS
FIELDS = part_fields(
    {
        "program": shape.text("the program that the hooks call", null=True),
        "is_current": shape.flag("the program exists, is this one, and the hooks are those of this version"),
        "trusted": shape.flag("null if the agent does not ask for trust", null=True),
        "blocked_by": shape.text("the setting that prevents hooks from running", null=True),
        "fills": shape.text("the home that they write to, if it is not the default", null=True),
        "last_event": shape.text(null=True),
        "last_at": shape.time(null=True),
        "last_error": shape.text(null=True),
        "tells_less": shape.text("what this version of the agent does not report", null=True),
    }
)


@declare(
    Argument("action", choices=("install", "uninstall", "status"), default="status"),
    Argument("agents", "[AGENT]...", kind="agent"),
    Option("--all -a", "Every installed agent.", name="everyone"),
    Option("--project", "In this repository's files, not in the user's.", name="in_project"),
    Option("--trust", "Mark these hooks as trusted in Codex, so that it does not ask."),
    DRY_RUN_OPTION,
    Option("--anyway", "Also from a temporary environment."),
    is_read_only=lambda options: options["dry_run"] or options["action"] == "status",
)
def command(
    action: str,
    agents: tuple[str, ...],
    everyone: bool,
    in_project: bool,
    trust: bool,
    dry_run: bool,
    anyway: bool,
    as_json: bool,
) -> None:
    """Let agents report every turn, to inspect and take back each.

    `install` adds a few hooks to the settings of an agent, after the existing ones, and changes nothing else;
    `uninstall` restores the files. Both show each file, and keep a copy of it. `status` shows the state of the hooks.

    \b
    turnlog hooks install                    asks for each agent that is here
    turnlog hooks install claude-code codex  these two
    turnlog hooks install --all --dry-run    what it would change
    turnlog hooks status                     which hooks run, and what stops them
    turnlog hooks uninstall --all            restore the settings
    """
    location = home_location()
    scope = "project" if in_project else "user"
    part = HooksPart(location, anyway=anyway, scope=scope, are_trusted=trust)
    request = PartRequest(action, agents, everyone, dry_run, as_json)
    change = change_settings(part, request)
    mark_hooks_seen(location)
    if as_json:
        traces = last_hook_events(location)
        print_change_json(request, change, [json_hook_status(row, traces) for row in part.statuses()])
    elif action == "status":
        print_statuses(part.statuses(), last_hook_events(location), location, space=space_lines(location))
    else:
        chosen = [hooked_agent(name) for name in change.agents]
        print_edits(action, chosen, change.edits, trusted=trust, dry_run=dry_run, in_project=in_project)
