"""`turnlog keep`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from turnlog.cli.draw.keeping import print_status
from turnlog.cli.fields.keeping import KEPT, SettingsChange, keep_status
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import note, tell, tell_table, warn
from turnlog.cli.frame.question import ask, can_ask
from turnlog.errors import Invalid, NotFound, Unavailable
from turnlog.machine.environment import default_home
from turnlog.machine.keepstate import KeepState, keep_going
from turnlog.reader.naming.here import tilde

if TYPE_CHECKING:
    from turnlog.exchange.keeping.retention import Limit

GROUP = "Safety net", 12
CHANGES = shape.OTHERS
FIELDS = KEPT


@declare(
    Argument("agents", "[AGENT]...", kind="agent"),
    Option("--status", "Only show what is kept."),
    Option("--stop", "Stop keeping; the copies stay."),
    Option("--yes -y", "Change the settings of agents without asking."),
    Option("--now", "Keep what is new, in this process.", hidden=True),
    is_read_only=lambda options: options["status"],
)
def command(agents: tuple[str, ...], status: bool, stop: bool, yes: bool, now: bool, as_json: bool) -> None:
    """Keep the sessions of agents that delete them. Claude Code and Gemini CLI do so after 30 days.

    From now on, turnlog commands copy sessions and what they grow by, briefly and in the background. A copy takes about
    a sixth of the space. A session that its agent deleted is still listed, found, shown, counted and resumed; resuming
    puts it back in place, to the byte.

    If the agent has a setting for it, the command also offers to change that to "delete nothing": it shows the change,
    and asks. Without an AGENT it applies to all installed agents that delete sessions.

    \b
    turnlog keep                 keep them, and ask for each agent's own limit
    turnlog keep codex           an agent that deletes none: against accidents
    turnlog keep --status        what is kept, and where
    turnlog keep --stop          keep nothing more; what is kept stays
    """
    state = KeepState(home_location() or default_home())
    if not state.is_possible:
        raise Unavailable("there is no folder to remember it in", hint="set HOME or XDG_STATE_HOME")
    if sum((status, stop, now)) > 1 or (status and agents):
        raise Invalid("--status and --stop stand alone", hint="`turnlog keep --help`")
    if now:
        _now(state)
        return
    keeper_pid = 0
    stopped: list[str] = []
    changes: list[SettingsChange] = []
    if stop:
        stopped = _stop(state, agents)
    elif not status:
        chosen = _chosen(agents)
        state.choose(sorted({*state.agents(), *chosen}))
        keeper_pid = keep_going(state.location)
        changes = _offer_unlimited(chosen, yes=yes, as_json=as_json)
    kept = keep_status(state)
    kept.running = kept.running or bool(keeper_pid)
    if as_json:
        print_json({**asdict(kept), "settings": list(map(asdict, changes))})
    else:
        print_status(kept, stopped)


def _stop(state: KeepState, agents: tuple[str, ...]) -> list[str]:
    """Stop keeping the sessions of these agents, or of all. Returns the agents for which it was on."""
    _check_known(agents)
    kept = state.agents()
    for name in agents:
        if name not in kept:
            note(f"{name} was not kept")
    stopped = [name for name in kept if not agents or name in agents]
    state.choose([name for name in kept if name not in stopped])
    return stopped


def _now(state: KeepState) -> None:
    from turnlog.catalog import Catalog
    from turnlog.exchange.keeping.run import Keeping
    from turnlog.machine.detached import alone

    with alone(state.lock_path) as is_ours:
        if is_ours and state.agents():
            Keeping(state.location).run()
            with Catalog(state.location, agents=True, deferred=True) as catalog:
                catalog.sync()


def _check_known(agents: tuple[str, ...]) -> None:
    """Raise `NotFound` for a name that is no agent's."""
    from turnlog.formats import is_known, names

    for name in agents:
        if not is_known(name):
            is_option = name in ("status", "stop")
            hint = f"did you mean `turnlog keep --{name}`?" if is_option else f"one of {', '.join(names())}"
            raise NotFound(f"no agent {name!r:.80}", hint=hint)


def _chosen(agents: tuple[str, ...]) -> list[str]:
    """Return the agents whose sessions are to be kept: those that were named, or those that delete sessions."""
    from turnlog.exchange.keeping.retention import limits
    from turnlog.exchange.keeping.run import check_keepable

    _check_known(agents)
    for name in agents:
        check_keepable(name)
    chosen = list(agents) or [limit.agent for limit in limits()]
    if not chosen:
        raise NotFound("no agent here deletes sessions by itself", hint="`turnlog keep AGENT` keeps those of any other")
    return chosen


def _offer_unlimited(agents: list[str], *, yes: bool, as_json: bool) -> list[SettingsChange]:
    """Show the change after which each agent deletes nothing, and make it if that is wanted."""
    from turnlog.cli.draw.fileedit import changed_lines
    from turnlog.exchange.keeping.retention import limits, unlimited_retention
    from turnlog.formats import format_of

    changes: list[SettingsChange] = []
    for limit in limits():
        retention = format_of(limit.agent).retention
        if limit.agent not in agents or retention is None or limit.is_long:
            continue
        file, edit = unlimited_retention(retention)
        if limit.problem:
            warn(limit.problem)
            continue
        before = file.text()
        diff = [f"+++ {tilde(file.path)}", *changed_lines(before, edit(before))]
        if not as_json:
            _show(limit, diff)
        unchanged = f"{tilde(file.path)} was not changed"
        is_wanted = yes or (can_ask(as_json=as_json) and ask("change it?", nothing=unchanged))
        if is_wanted:
            file.change(edit)
        if not as_json:
            how = "" if can_ask(as_json=as_json) else ": `turnlog keep --yes` does it"
            tell(f"{tilde(file.path)} is changed" if is_wanted else f"{unchanged}{how}")
        changes.append(SettingsChange(limit.agent, file.path, "\n".join(diff), is_wanted))
    return changes


def _show(limit: Limit, diff: list[str]) -> None:
    from turnlog.cli.draw.fileedit import painted

    tell(f"{limit.agent} deletes sessions after {limit.days or 0:g} days. This setting prevents it:")
    tell_table(painted(diff, sys.stderr))
