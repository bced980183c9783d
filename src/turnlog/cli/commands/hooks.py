"""`turnlog hooks`."""

from __future__ import annotations

from turnlog.cli.draw.hooks import print_edits, print_statuses
from turnlog.cli.fields.agentfile import EDITED_FILES, json_edit, json_hook_status
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import DRY_RUN_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.overview.diskspace import space_lines
from turnlog.cli.pick.agent import AgentChoice
from turnlog.errors import Invalid
from turnlog.hooks import HookedAgent, hooked_agent, names
from turnlog.hooks.install import plan_install, plan_uninstall
from turnlog.hooks.places import HookPlaces
from turnlog.hooks.status import statuses
from turnlog.machine.edit import FileEdit, make_edit
from turnlog.machine.launcher import launcher, this_launcher
from turnlog.reader.agents.hookedhome import hook_places, last_hook_events, mark_hooks_seen
from turnlog.reader.naming.here import tilde

GROUP = "Safety net", 2
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
            "program": shape.text("the program that the hooks call", null=True),
            "is_current": shape.flag("the program exists, is this one, and the hooks are those of this version"),
            "trusted": shape.flag("null if the agent does not ask for trust", null=True),
            "blocked_by": shape.text("the setting that prevents hooks from running", null=True),
            "fills": shape.text("the home that they write to, if it is not the default", null=True),
            "last_event": shape.text(null=True),
            "last_at": shape.time(null=True),
            "last_error": shape.text(null=True),
            "tells_less": shape.text("what this version of the agent does not report", null=True),
        },
    ),
    "files": EDITED_FILES,
}


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
    places = hook_places(home_location())
    edits: list[FileEdit] = []
    chosen: list[HookedAgent] = []
    if action == "uninstall" and not dry_run:
        refuse_agent("hooks uninstall")
    if action != "status":
        scope = "project" if in_project else "user"
        program = this_launcher() if anyway or action == "uninstall" else launcher()  # before the questions
        chosen = _chosen(action, agents, places, scope, everyone=everyone, as_json=as_json)
        if action == "install":
            edits = [edit for agent in chosen for edit in plan_install(agent, places, scope, program, trust=trust)]
        else:
            edits = [edit for agent in chosen for edit in plan_uninstall(agent, places, scope)]
        for edit in edits if not dry_run else ():
            make_edit(edit, places.imprints)
    elif agents or everyone:
        raise Invalid("`turnlog hooks status` is about all agents", hint="`turnlog hooks install AGENT` hooks one")
    mark_hooks_seen(home_location())
    if as_json:
        last_events = last_hook_events(home_location())
        rows = [json_hook_status(row, last_events) for row in statuses(places)]
        data = {"action": action, "dry_run": dry_run, "agents": rows}
        print_json({**data, "files": [json_edit(edit) for edit in edits if edit.is_change]})
    elif action == "status":
        location = home_location()
        print_statuses(statuses(places), last_hook_events(location), location, space=space_lines(location))
    else:
        print_edits(action, chosen, edits, trusted=trust, dry_run=dry_run, in_project=in_project)


def _chosen(
    action: str, named: tuple[str, ...], places: HookPlaces, scope: str, *, everyone: bool, as_json: bool
) -> list[HookedAgent]:
    if action == "install":
        candidates = [name for name in names() if places.has(hooked_agent(name))]
    else:
        candidates = [row.agent for row in statuses(places) if row.installed]
    if scope == "project" and not everyone:  # what has no hooks of a project is not offered any
        candidates = [name for name in candidates if hooked_agent(name).file.project is not None]
    choice = AgentChoice(action=action, thing="hooks", participle="hooked", supported=names(), candidates=candidates)
    return [
        hooked_agent(name)
        for name in choice.chosen(
            named, lambda name: _question(action, hooked_agent(name), places, scope), everyone=everyone, as_json=as_json
        )
    ]


def _question(action: str, one: HookedAgent, places: HookPlaces, scope: str) -> str:
    where = tilde(places.file(one, scope))
    does = f"add hooks to {where}" if action == "install" else f"take our hooks out of {where}"
    return f"{one.title}: {does}?"
