"""`turnlog mv`."""

from __future__ import annotations

import sys
from pathlib import Path

from turnlog.cli.draw.text import count, one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.shape import DRY_RUN
from turnlog.errors import Invalid, NotFound
from turnlog.machine.folder import expand, workspace_path
from turnlog.session import Home
from turnlog.thread.report import Info

CHANGES = shape.LOG
FIELDS = {
    "dry_run": DRY_RUN,
    "sessions": shape.items(
        "one each", {"id": shape.text(), "handle": shape.text(), "workspace": shape.text("the new one")}
    ),
    "other_agents": shape.one("how many sessions of each other agent were not moved"),
}


@declare(Argument("old"), Argument("new"), Option("--dry-run", "Only list the sessions."))
def command(old: str, new: str, dry_run: bool, as_json: bool) -> None:
    """Record that a project moved: its sessions belong to the folder NEW from now on.

    No files are moved: do that first. Sessions of folders below OLD move along. Files of other agents are not changed;
    import their sessions with `turnlog import` to move them.

    \b
    turnlog mv ~/webshop ~/work/webshop
    turnlog mv --dry-run /old/place .
    """
    before, after = workspace_path(expand(old)), workspace_path(expand(new))
    if before == after:
        raise Invalid(f"{before} is the same folder")
    if not Path(after).is_dir():
        raise Invalid(f"there is no folder {after}", hint="move the project first: `turnlog mv` moves no files")
    with this_home() as home:
        moving = _moving(home, before)
        others = _others(before)
        if not moving:
            hint = f"{_told(others)}; `turnlog import` makes those ours" if others else "`turnlog ls --all` shows all"
            raise NotFound(f"no session of ours for {before}", hint=hint)
        rows = [{"id": row.id, "handle": row.handle, "workspace": _moved(row, before, after)} for row in moving]
        if not dry_run:
            for row in rows:
                with home.resume(row["id"]) as session:
                    session.set("workspace", row["workspace"])
    if as_json:
        print_json({"dry_run": dry_run, "sessions": rows, "other_agents": others})
        return
    for row in rows:
        print(f"{one_line(row['handle'])}  {one_line(row['workspace'])}")
    verb = "would move" if dry_run else "moved"
    print(one_line(f"{verb} {count(len(rows), 'session')} from {before} to {after}"), file=sys.stderr)
    if others:
        note = f"{_told(others)}; they stay with {before}: `turnlog import` makes them ours"
        print(one_line(f"note: {note}"), file=sys.stderr)


def _moving(home: Home, before: str) -> list[Info]:
    inside = before.rstrip("/") + "/"
    return [row for row in home.sessions() if row.workspace and (row.workspace + "/").startswith(inside)]


def _moved(row: Info, before: str, after: str) -> str:
    return after + (row.workspace or "")[len(before) :]


def _told(others: dict[str, int]) -> str:
    return ", ".join(f"{count(number, 'session')} of {agent}" for agent, number in others.items())


def _others(before: str) -> dict[str, int]:
    """How many sessions of other agents are there, by agent."""
    from turnlog.cli.pick.catalog import catalog
    from turnlog.reader.folder import within

    counts: dict[str, int] = {}
    with catalog(home_location()) as asked:
        for card in asked.cards(within("", before)):
            if not card.is_ours and card.agent:
                counts[card.agent] = counts.get(card.agent, 0) + 1
    return counts
