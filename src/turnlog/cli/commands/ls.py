"""`turnlog ls`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from turnlog.cli.option import print_json, shared, this_home
from turnlog.cli.text import moment, one_line, table

if TYPE_CHECKING:
    from turnlog.session.report import Info


@click.command()
@click.option("--workspace", "-w", metavar="PATH", help="Only sessions of that folder.")
@click.option("--all", "everything", is_flag=True, help="Hidden sessions and those of subagents as well.")
@click.option("--deleted", is_flag=True, help="What is in the trash instead.")
@click.option("--limit", "-n", type=click.IntRange(min=1), metavar="N", help="Only the N newest.")
@shared
def command(workspace: str | None, everything: bool, deleted: bool, limit: int | None, as_json: bool) -> None:
    """List the sessions, the one with the newest entry first."""
    with this_home() as home:
        rows = home.sessions(workspace=workspace, deleted=deleted)
    if not everything:
        rows = [row for row in rows if not row.hidden and row.parent is None]
    rows = rows[:limit]
    if as_json:
        print_json({"sessions": rows})
        return
    if not rows:
        what = "deleted sessions" if deleted else "sessions"
        where = f" for {workspace}" if workspace is not None else ""
        print(one_line(f"no {what}{where}"), file=sys.stderr)
        return
    head = ("SESSION", "LAST ENTRY", "SEQ", "AGENT", "WORKSPACE", "TITLE")
    for line in table(head, map(_cells, rows), right=(2,)):
        print(line)


def _cells(row: Info) -> tuple[str, ...]:
    marks = [
        f"fork of {row.fork.session.rpartition('-')[2]}" if row.fork is not None else "",
        "subagent" if row.parent is not None else "",
        "hidden" if row.hidden else "",
        "archived" if row.archived else "",
        "" if row.is_readable else "first line damaged",
    ]
    marked = ", ".join(filter(None, marks))
    title = " ".join(filter(None, (row.title or "", f"({marked})" if marked else "")))
    folder = (row.workspace or "").rpartition("/")[2]
    return row.handle, moment(row.updated_at)[:16], str(row.seq), row.agent or "", folder, title
