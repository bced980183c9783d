"""`turnlog keep`."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.keeping import LONG_DAYS, print_status
from turnlog.cli.draw.question import ask, can_ask
from turnlog.cli.draw.text import coloured, one_line, safe
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.home import home_location
from turnlog.errors import Invalid, NotFound, Unavailable
from turnlog.machine.environment import default_home
from turnlog.machine.keepstate import KeepState, keep_going
from turnlog.reader.folder import tilde

if TYPE_CHECKING:
    from turnlog.exchange.keeping import Limit

CHANGES = shape.OTHERS
FIELDS = {
    "agents": shape.items(
        "those whose sessions are kept",
        {
            "agent": shape.text(),
            "is_kept": shape.flag("whether keeping is on"),
            "days": shape.real("days after which the agent deletes them; null for never", null=True),
            "settings": shape.text("the file with that setting", null=True),
            "files": shape.number("number of kept files"),
            "bytes": shape.number("their size"),
        },
    ),
    "folder": shape.text("where they are kept"),
    "running": shape.flag("whether keeping is running now"),
    "last": shape.one("the last run: when, how many files had something new, and the problems by file", null=True),
    "settings": shape.each(
        "what was or could be changed so that agents delete nothing",
        {"agent": shape.text(), "path": shape.text(), "diff": shape.text(), "done": shape.flag()},
    ),
}


@declare(
    Argument("agents", "[AGENT]..."),
    Option("--status", "Only show what is kept."),
    Option("--stop", "Stop keeping; the copies stay."),
    Option("--yes -y", "Change the settings of agents without asking."),
    Option("--now", "Keep what is new, in this process.", hidden=True),
)
def command(agents: tuple[str, ...], status: bool, stop: bool, yes: bool, now: bool, as_json: bool) -> None:
    """Keep the sessions of agents that delete them, as Claude Code and Gemini CLI do after 30 days.

    From now on, turnlog commands copy sessions and what they grow by, briefly and in the background. A copy takes about
    a sixth of the space. A session that its agent deleted is still listed, found, shown, counted and resumed; resuming
    puts it back in place, to the byte.

    If the agent has a setting for it, the command also offers to change that to "delete nothing": it shows the change,
    and asks. Without an AGENT it applies to all installed agents that delete sessions.

    \b
    turnlog keep                 keep them, and ask for each agent's own limit
    turnlog keep codex           an agent that deletes none: against accidents
    turnlog keep --status        what is kept, and where
    turnlog keep --stop          no more; what is kept stays
    """
    state = KeepState(home_location() or default_home())
    if not state.is_possible:
        raise Unavailable("there is no folder to remember it in", hint="set HOME or XDG_STATE_HOME")
    if sum((status, stop, now)) > 1 or (status and agents):
        raise Invalid("--status and --stop stand alone", hint="`turnlog keep --help`")
    if now:
        _now(state)
        return
    begun = 0
    edits: list[dict[str, Any]] = []
    if stop:
        state.choose([name for name in state.agents() if agents and name not in agents])
    elif not status:
        chosen = _chosen(agents)
        state.choose(sorted({*state.agents(), *chosen}))
        begun = keep_going(state.location)
        edits = _told_to_stay(chosen, yes=yes, as_json=as_json)
    status_document = _status(state)
    status_document["running"] = status_document["running"] or bool(begun)
    if as_json:
        print_json({**status_document, "settings": edits})
    else:
        print_status(status_document, is_stopped=stop)


def _now(state: KeepState) -> None:
    from turnlog.catalog import Catalog
    from turnlog.exchange.keeping import Keeping
    from turnlog.machine.detached import alone

    with alone(state.lock_path) as is_ours:
        if is_ours and state.agents():
            Keeping(state.location).run()
            with Catalog(state.location, agents=True, deferred=True) as catalog:
                catalog.sync()


def _chosen(agents: tuple[str, ...]) -> list[str]:
    from turnlog.exchange.keeping import check_keepable, limits
    from turnlog.formats import is_known, names

    for name in agents:
        if not is_known(name):
            is_option = name in ("status", "stop")
            hint = f"did you mean `turnlog keep --{name}`?" if is_option else f"one of {', '.join(names())}"
            raise NotFound(f"no agent {name!r:.80}", hint=hint)
        check_keepable(name)
    chosen = list(agents) or [limit.agent for limit in limits()]
    if not chosen:
        raise NotFound("no agent here deletes sessions by itself", hint="`turnlog keep AGENT` keeps those of any other")
    return chosen


# ── the limits of agents ──────────────────────────────────────────────────────────────────────────


def _told_to_stay(agents: list[str], *, yes: bool, as_json: bool) -> list[dict[str, Any]]:
    """Show how each agent is told to delete nothing, and do so if that is wanted."""
    from turnlog.exchange.keeping import limits, unlimited_retention
    from turnlog.formats import format_of

    edits: list[dict[str, Any]] = []
    for limit in limits():
        retention = format_of(limit.agent).retention
        if limit.agent not in agents or limit.days is None or retention is None or limit.days >= LONG_DAYS:
            continue
        file, edit = unlimited_retention(retention)
        if limit.problem:
            print(one_line(f"warning: {limit.problem}"), file=sys.stderr)
            continue
        before = file.text()
        diff = list(_diff(tilde(file.path), before, edit(before)))
        if not as_json:
            _show(limit, diff)
        is_wanted = yes or (can_ask(as_json=as_json) and ask("change it?"))
        if is_wanted:
            file.change(edit)
        if not as_json:
            how = "" if can_ask(as_json=as_json) else ": `turnlog keep --yes` does it"
            outcome = "is changed" if is_wanted else f"was not changed{how}"
            print(one_line(f"{tilde(file.path)} {outcome}"), file=sys.stderr)
        edits.append({"agent": limit.agent, "path": file.path, "diff": "\n".join(diff), "done": is_wanted})
    return edits


def _show(limit: Limit, diff: list[str]) -> None:
    print(f"{limit.agent} deletes sessions after {limit.days:g} days. This setting prevents it:", file=sys.stderr)
    for line in diff:
        colour = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
        print(f"  {coloured(safe(line), colour, sys.stderr)}", file=sys.stderr)


def _diff(name: str, before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, n=1, lineterm="")
    return [line for line in lines if not line.startswith(("@@", "---"))]


# ── how it stands ─────────────────────────────────────────────────────────────────────────────────


def _status(state: KeepState) -> dict[str, Any]:
    from turnlog.exchange.keeping import last_report, limit_of
    from turnlog.exchange.kept import KeptFiles
    from turnlog.formats import format_of
    from turnlog.machine.detached import is_taken

    kept = KeptFiles(state.location)
    on = state.agents()
    rows: list[dict[str, Any]] = []
    for agent in sorted({*on, *kept.agents()}):
        retention = format_of(agent).retention
        limit = None if retention is None else limit_of(agent, retention)
        rows.append({
            "agent": agent, "is_kept": agent in on, "days": None if limit is None else limit.days,
            "settings": None if limit is None else limit.settings, "files": sum(1 for _ in kept.every(agent)),
            "bytes": kept.bytes_of(agent),
        })  # fmt: skip
    return {"agents": rows, "folder": kept.folder, "running": is_taken(state.lock_path), "last": last_report(state)}
