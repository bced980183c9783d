"""`turnlog mv`."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from turnlog.cli.frame.command import DRY_RUN_OPTION, Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.each import EachOutcome, act_on_each
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.notes import note, tell
from turnlog.errors import Invalid, NotFound
from turnlog.log.path import moved_along, path_bytes
from turnlog.machine.folder import expand, workspace_path
from turnlog.session import Home
from turnlog.view.number import count
from turnlog.view.visible import one_line

GROUP = "Care", 14
CHANGES = shape.LOG
FIELDS = {
    "dry_run": DRY_RUN,
    "sessions": shape.items(
        "one each", {"id": shape.text(), "handle": shape.text(), "workspace": shape.text("the new one")}
    ),
    "other_agents": shape.one("how many sessions of each other agent were not moved"),
}


@declare(Argument("old", kind="folder"), Argument("new", kind="folder"), DRY_RUN_OPTION)
def command(old: str, new: str, dry_run: bool, as_json: bool) -> None:
    """Record that a project moved. Its sessions belong to the folder NEW from now on.

    No files are moved: do that first. Sessions of folders below OLD move along. Files of other agents are not changed;
    import their sessions with `turnlog import` to move them.

    \b
    turnlog mv ~/webshop ~/work/webshop
    turnlog mv --dry-run /old/place .
    """
    before, after = workspace_path(expand(old)), workspace_path(expand(new))
    if before == after:
        raise Invalid(f"{before} is the same folder")
    if not Path(os.fsdecode(path_bytes(after))).is_dir():
        raise Invalid(f"there is no folder {after}", hint="move the project first: `turnlog mv` moves no files")
    with this_home() as home:
        moving = _moving(home, before, after)
        others = _others(before)
        if not moving:
            hint = (
                f"{_counted(others)}; `turnlog import` makes those ours" if others else "`turnlog ls --all` shows all"
            )
            raise NotFound(f"no session of ours for {before}", hint=hint)
        rows = {row.id: row for row in moving}

        def move(session_id: str) -> None:
            with home.resume(session_id) as session:
                session.set("workspace", os.fsdecode(path_bytes(rows[session_id].workspace)))

        outcome = EachOutcome(list(rows), None) if dry_run else act_on_each(list(rows), move)
    moved = [rows[session_id] for session_id in outcome.done]
    _print(moved, others, before, after, dry_run=dry_run, as_json=as_json)
    outcome.raise_error()


class MovedSession(Struct):
    """A session, and the folder it belongs to from now on."""

    id: str
    handle: str
    workspace: str


def _print(
    rows: list[MovedSession], others: dict[str, int], before: str, after: str, *, dry_run: bool, as_json: bool
) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "sessions": list(map(asdict, rows)), "other_agents": others})
        return
    for row in rows:
        print(f"{one_line(row.handle)}  {one_line(row.workspace)}")
    verb = "would move" if dry_run else "moved"
    tell(f"{verb} {count(len(rows), 'session')} from {before} to {after}")
    if others:
        note(f"{_counted(others)}; they stay with {before}: `turnlog import` makes them ours")


def _moving(home: Home, before: str, after: str) -> list[MovedSession]:
    """Return the sessions of a folder and of those below it, each with its new folder."""
    moving: list[MovedSession] = []
    for row in home.sessions():
        workspace = row.workspace or ""
        moved = after if workspace == before else moved_along(workspace, before, after)
        if moved != workspace:
            moving.append(MovedSession(row.id, row.handle, moved))
    return moving


def _counted(others: dict[str, int]) -> str:
    return ", ".join(f"{count(number, 'session')} of {agent}" for agent, number in others.items())


def _others(before: str) -> dict[str, int]:
    """How many sessions of other agents are there, by agent."""
    from turnlog.cli.pick.catalog import open_catalog
    from turnlog.reader.naming.here import in_folder

    counts: dict[str, int] = {}
    with open_catalog(home_location()) as catalog:
        for card in catalog.cards(in_folder("", before)):
            if not card.is_ours and card.agent:
                counts[card.agent] = counts.get(card.agent, 0) + 1
    return counts
