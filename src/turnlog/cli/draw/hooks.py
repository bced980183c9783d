"""Hooks of agents for people: what was changed in which file, and how they stand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import coloured, one_line
from turnlog.hooks import HookedAgent, agent
from turnlog.hooks.install import FileEdit
from turnlog.hooks.status import HookStatus
from turnlog.reader.folder import tilde


def status_as_plain(row: HookStatus) -> dict[str, Any]:
    """For programs."""
    return {**row._asdict(), "last_event": None, "last_at": None, "last_error": None}


def edit_as_plain(edit: FileEdit) -> dict[str, str]:
    """For programs."""
    return {"agent": edit.agent, "path": edit.path, "change": "removed" if edit.after is None else "written"}


def print_edits(action: str, agents: list[HookedAgent], edits: list[FileEdit], *, trusted: bool, dry_run: bool) -> None:
    """Each file, and what to do next."""
    for one in agents:
        changed = [edit for edit in edits if edit.agent == one.name and edit.is_change]
        if not changed:
            nothing = "hooked already" if action == "install" else "not hooked"
            print(f"{one.title}: {nothing}")
        for edit in changed:
            what = "removed" if edit.after is None else "written"
            print(one_line(f"{one.title}: {tilde(edit.path)} {'would be ' if dry_run else ''}{what}"))
            for line in _difference(edit) if dry_run else ():
                print(line)
        if changed and not dry_run:
            print(coloured(f"  {_after(action, one, trusted=trusted)}", "dim", sys.stdout))
    if action == "install" and not dry_run and agents:
        print(
            "From its next turn on: `turnlog diff --turn 1`, `turnlog rewind`; `turnlog hooks status` says how it goes"
        )


def _after(action: str, one: HookedAgent, *, trusted: bool) -> str:
    if action == "uninstall" or (one.trusts and trusted):
        return "takes effect when it is started anew"
    return one.after


def _difference(edit: FileEdit) -> Iterator[str]:
    before, after = ((data or b"").decode(errors="replace").splitlines() for data in (edit.before, edit.after))
    for number, line in enumerate(unified_diff(before, after, lineterm="", n=1)):
        if number > 1 and not line.startswith("@@"):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            yield coloured(f"  {one_line(line)}", colour, sys.stdout)


def print_statuses(rows: list[HookStatus]) -> None:
    """A table of those that are here, and what is wrong with any."""
    shown = [row for row in rows if row.is_here or row.installed]
    cells = [(agent(row.agent).title, _state(row), tilde(row.path)) for row in shown]
    for line in table(("AGENT", "HOOKS", "FILE"), cells):
        print(line)
    for row in shown:
        for problem in _problems(row):
            print(coloured(one_line(f"{agent(row.agent).title}: {problem}"), "yellow", sys.stdout))
    others = [agent(row.agent).title for row in rows if row not in shown]
    if others:
        print(coloured(f"not here: {', '.join(others)}", "dim", sys.stdout))


def _state(row: HookStatus) -> str:
    if not row.installed:
        return "no"
    where = " (project)" if row.scope == "project" else ""
    if row.blocked_by is not None:
        return f"switched off{where}"
    if row.trusted is False:
        return f"not trusted{where}"
    return f"yes{where}" if row.is_current else f"stale{where}"


def _problems(row: HookStatus) -> Iterator[str]:
    if row.blocked_by is not None:
        yield f"no hook runs: {row.blocked_by}"
    if not row.installed:
        return
    if row.trusted is False:
        yield "it runs none of them before you trust them: type /hooks there, or `turnlog hooks install codex --trust`"
    if not row.is_current:
        yield f"they call {row.program}, which is gone or another version; `turnlog hooks install {row.agent}` mends it"
