"""`turnlog hooks`."""

from __future__ import annotations

from turnlog.cli.draw.hooks import edit_as_plain, print_edits, print_statuses, status_as_plain
from turnlog.cli.frame import shape
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.shape import DRY_RUN
from turnlog.cli.pick.agent import AgentChoice
from turnlog.errors import Invalid
from turnlog.hooks import HookedAgent, agent, names
from turnlog.hooks.install import HookPlaces, apply, installing, uninstalling
from turnlog.hooks.status import statuses
from turnlog.machine.edit import FileEdit
from turnlog.machine.launcher import launcher, this_launcher
from turnlog.reader.folder import tilde
from turnlog.reader.hooking import hook_places, last_told, see_hooks

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
    "files": shape.each(
        "what was changed",
        {"agent": shape.text(), "path": shape.text(), "change": shape.text("`written` or `removed`")},
    ),
}


@declare(
    Argument("action", choices=("install", "uninstall", "status"), default="status"),
    Argument("agents", "[AGENT]..."),
    Option("--all -a", "Every installed agent.", name="everyone"),
    Option("--project", "In this repository's files, not in the user's.", name="in_project"),
    Option("--trust", "Mark these hooks as trusted in Codex, so that it does not ask."),
    Option("--dry-run -n", "Only show what would be changed."),
    Option("--anyway", "Also from a temporary environment."),
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
    """Let agents report every turn, so that each can be inspected and taken back.

    `install` adds a few hooks to the settings of an agent, after the existing ones, and changes nothing else;
    `uninstall` restores the files. Both show each file, and keep a copy of it. `status` shows the state of the hooks.

    \b
    turnlog hooks install                    asks for each agent that is here
    turnlog hooks install claude-code codex  these two
    turnlog hooks install --all --dry-run    what it would change
    turnlog hooks status                     what runs, and what keeps it from it
    turnlog hooks uninstall --all            as if nothing had been
    """
    places = hook_places(home_location())
    edits: list[FileEdit] = []
    chosen: list[HookedAgent] = []
    if action != "status":
        scope = "project" if in_project else "user"
        program = this_launcher() if anyway or action == "uninstall" else launcher()  # before anybody is asked
        chosen = _chosen(action, agents, places, everyone=everyone, as_json=as_json)
        if action == "install":
            edits = [edit for one in chosen for edit in installing(one, places, scope, program, trust=trust)]
        else:
            if not dry_run:
                refuse_agent("`hooks uninstall`")
            edits = [edit for one in chosen for edit in uninstalling(one, places, scope)]
        for edit in edits if not dry_run else ():
            apply(edit, places)
    elif agents or everyone:
        raise Invalid("`turnlog hooks status` is about all agents", hint="`turnlog hooks install AGENT` hooks one")
    see_hooks(home_location())
    if as_json:
        last_events = last_told(home_location())
        rows = [status_as_plain(row, last_events) for row in statuses(places)]
        data = {"action": action, "dry_run": dry_run, "agents": rows}
        print_json({**data, "files": [edit_as_plain(edit) for edit in edits if edit.is_change]})
    elif action == "status":
        print_statuses(statuses(places), last_told(home_location()), home_location())
    else:
        print_edits(action, chosen, edits, trusted=trust, dry_run=dry_run, in_project=in_project)


def _chosen(
    action: str, named: tuple[str, ...], places: HookPlaces, *, everyone: bool, as_json: bool
) -> list[HookedAgent]:
    if action == "install":
        there = [name for name in names() if places.has(agent(name))]
    else:
        there = [row.agent for row in statuses(places) if row.installed]
    choice = AgentChoice(action, "hooks", "hooked", names(), there)
    return [
        agent(name)
        for name in choice.chosen(
            named, lambda name: _question(action, agent(name), places), everyone=everyone, as_json=as_json
        )
    ]


def _question(action: str, one: HookedAgent, places: HookPlaces) -> str:
    where = tilde(places.file(one, "user"))
    does = f"add hooks to {where}" if action == "install" else f"take our hooks out of {where}"
    return f"{one.title}: {does}?"
