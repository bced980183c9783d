"""Hooks of agents for people: what was changed in which file, and how they stand."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import unified_diff
from typing import Any

from turnlog.cli.draw.room import room_short, room_told
from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import ago, coloured, one_line, safe
from turnlog.hooks import HookedAgent, agent, names
from turnlog.hooks.call import call
from turnlog.hooks.entries import entries
from turnlog.hooks.status import HookStatus, tells_less
from turnlog.machine.edit import FileEdit
from turnlog.machine.environment import usual_home
from turnlog.machine.settings import plain
from turnlog.reader.folder import tilde
from turnlog.reader.hooking import filled_home

_NOTHING = {"last_event": None, "last_at": None, "last_error": None}


def status_as_plain(row: HookStatus, last_events: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """For programs, with what its hooks told last."""
    last: dict[str, Any] = {**_NOTHING, **last_events.get(row.agent, {})}
    last["tells_less"] = tells_less(agent(row.agent), last.pop("events", {}))
    if last["last_at"] is not None:
        last["last_at"] = datetime.fromtimestamp(last["last_at"], UTC).isoformat(timespec="milliseconds")[:23] + "Z"
    return {**row._asdict(), **last}


def edit_as_plain(edit: FileEdit) -> dict[str, str]:
    """For programs."""
    return {"agent": edit.agent, "path": edit.path, "change": "removed" if edit.after is None else "written"}


def print_edits(
    action: str, agents: list[HookedAgent], edits: list[FileEdit], *, trusted: bool, dry_run: bool, in_project: bool
) -> None:
    """Each file, and what to do next."""
    for one in agents:
        changed = [edit for edit in edits if edit.agent == one.name and edit.is_change]
        if not changed:
            nothing = "hooked already" if action == "install" else "not hooked"
            print(f"{one.title}: {nothing}")
        for edit in changed:
            what = "removed" if edit.after is None else "written"
            print(one_line(f"{one.title}: {tilde(edit.path)} {'would be ' if dry_run else ''}{what}"))
            for line in difference(edit) if dry_run else ():
                print(line)
        for edit in edits if trusted and one.trusts else ():
            for line in _trusted(one, edit):
                print(coloured(f"  trusted: {line}", "dim", sys.stdout))
        if changed and not dry_run:
            print(coloured(f"  {_after(action, one, trusted=trusted)}", "dim", sys.stdout))
        if changed and action == "install" and in_project and one.project_needs:
            print(coloured(f"  {one.project_needs}", "dim", sys.stdout))
    if action == "install" and not dry_run and any(edit.is_change for edit in edits):
        print("From the next turn on: `turnlog diff`, `turnlog rewind`. `turnlog hooks status` says how it goes.")


def _trusted(one: HookedAgent, edit: FileEdit) -> Iterator[str]:
    """What is trusted from then on, as it will be run."""
    if edit.after is not None and edit.path.endswith(one.file.name):
        for entry in entries(plain(edit.after.decode(), dialect=one.file.dialect), one):
            yield one_line(call(entry.program, one.name, entry.event, entry.home))


def _after(action: str, one: HookedAgent, *, trusted: bool) -> str:
    if action == "uninstall" or (one.trusts and trusted):
        return "takes effect when the agent is restarted"
    return one.after


def difference(edit: FileEdit) -> Iterator[str]:
    """What it changes, line by line."""
    before, after = ((data or b"").decode(errors="replace").splitlines() for data in (edit.before, edit.after))
    for number, line in enumerate(unified_diff(before, after, lineterm="", n=1)):
        if number > 1 and not line.startswith("@@"):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            yield coloured(f"  {safe(line)}", colour, sys.stdout)


def print_statuses(rows: list[HookStatus], last_events: dict[str, dict[str, Any]], location: str | None) -> None:
    """A table of those that are here, what is wrong with any, and how much room there is."""
    listed = [row for row in rows if row.is_here or row.installed]
    now = time.time()
    cells = [
        (agent(row.agent).title, _state(row), _last(last_events.get(row.agent), now), tilde(row.path)) for row in listed
    ]
    for line in table(("AGENT", "HOOKS", "LAST EVENT", "FILE"), cells):
        print(line)
    for row in listed:
        less = tells_less(agent(row.agent), last_events.get(row.agent, {}).get("events", {}))
        for problem in filter(None, (*_problems(row, filled_home(location)), less)):
            print(coloured(one_line(f"{agent(row.agent).title}: {problem}"), "yellow", sys.stdout))
    for line in failures(last_events):
        print(coloured(line, "yellow", sys.stdout))
    for line in filter(None, (room_told(location), room_short(location))):
        print(line)
    others = [agent(row.agent).title for row in rows if row not in listed]
    if others:
        print(coloured(f"not here: {', '.join(others)}", "dim", sys.stdout))


def failures(last_events: dict[str, dict[str, Any]]) -> list[str]:
    """What went wrong last in the hooks of each agent, and what to do."""
    return [
        one_line(f"{agent(name).title if name in names() else name}: the last failure of a hook: {last['last_error']}")
        for name, last in last_events.items()
        if last.get("last_error")
    ]


def _last(event: dict[str, Any] | None, now: float) -> str:
    return "" if event is None else f"{event['last_event']}, {ago(int(event['last_at'] * 1000), now)}"


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
        yield "it runs none of them before you trust them: type /hooks there, or `turnlog hooks install codex --trust`"
    if not row.is_current:
        yield f"they call {row.program}, which is gone or another version; `turnlog hooks install {row.agent}` mends it"
    if (row.fills or "") != here:
        where = tilde(row.fills or usual_home())
        yield f"its turns go to {where}; `turnlog hooks install {row.agent}` brings them here"
    if row.scope == "project" and agent(row.agent).project_needs:
        yield agent(row.agent).project_needs
