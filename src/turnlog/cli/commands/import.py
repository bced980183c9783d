"""`turnlog import`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from turnlog.cli.draw.problem import PROBLEM, tell_problems
from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.exitcode import INTERRUPTED, Left, Misused
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.progress import count as progress
from turnlog.cli.frame.progress import patience, unhurried
from turnlog.cli.pick.session import names
from turnlog.errors import TurnlogError, Unavailable
from turnlog.machine.environment import default_home
from turnlog.machine.folder import workspace_path
from turnlog.reader.name import is_path
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnlog.exchange.source import Imported
    from turnlog.formats import Source
CHANGES = shape.LOG
FIELDS = {
    "sessions": shape.items(
        "one each",
        {
            "id": shape.text("the id here; empty if it could not be read"),
            "agent": shape.text(),
            "source": shape.text("the file"),
            "key": shape.text("which session, if a file has several"),
            "added": shape.number("how many entries"),
            "problems": shape.each("what could not be read", PROBLEM),
            "copy_of": shape.text("the session of which it is a copy; then nothing was imported", null=True),
        },
    ),
}


@declare(
    Argument("paths", "[PATH|SESSION]..."),
    Option("--agent -a NAME", "Only sessions of that agent; without a PATH, from its own folder."),
    Option("--all", "From the folders of all known agents.", name="everything"),
    Option("--workspace -w PATH", "Only sessions about that folder."),
)
def command(
    paths: tuple[str, ...],
    agent: str | None,
    everything: bool,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Import sessions of other agents.

    Importing again only adds what is new; the files of the other agent are not touched. An unreadable record is skipped
    and reported. The exit code is 8 if a session could not be read at all; the others are imported.

    Ctrl-C stops after the session that is being read; a second one stops at once, and importing again continues there.

    \b
    turnlog import ~/old/.rho                every session in a file or folder
    turnlog import codex:0199                one session, as `turnlog ls` calls it
    turnlog import --agent claude-code -w .  what Claude Code has of this folder
    turnlog import --all                     whatever there is of any agent
    """
    if bool(paths or agent) == everything:
        raise Misused("give a PATH, --agent or --all; `turnlog formats` lists the agents")
    from turnlog.exchange.source import bring_all, sources

    imported: list[Imported] = []
    failed: TurnlogError | None = None
    with this_home() as home, patience():
        to_import: list[Source] = []
        for word in paths or (None,):
            named = None if word is None or is_path(word) else names(home).foreign(word)
            source = None if named is None else named.source
            to_import += sources(word, agent=agent, workspace=workspace) if source is None else [source]
        if not paths:
            to_import += _gone(agent, workspace)
        wanted = list(dict.fromkeys(to_import))
        with unhurried("this session is finished first") as is_enough:
            try:
                for item in bring_all(interior(home).creator, wanted, _tell):
                    imported.append(item)
                    if is_enough():
                        break
            except TurnlogError as error:
                failed = error
            is_cut = is_enough() and len(imported) < len(wanted)
    if as_json:
        print_json({"sessions": [_row(item) for item in imported]})
    else:
        _print(imported)
    left = len(wanted) - len(imported)
    if failed is not None:
        failed.message += f"; {count(max(left, 1), 'session')} not imported"
        raise failed
    if is_cut:
        print(f"interrupted: {count(max(left, 0), 'session')} left", file=sys.stderr)
        raise Left(INTERRUPTED)
    lost = [item for item in imported if not item.id]
    if lost:
        first = f"{lost[0].source.path}: {lost[0].problems[-1].what}"
        raise Unavailable(first if len(lost) == 1 else f"{len(lost)} sessions were not imported, the first {first}")


def _gone(agent: str | None, workspace: str | None) -> Iterator[Source]:
    """What was deleted where it lay, and is kept."""
    from turnlog.exchange.kept import KeptFiles
    from turnlog.formats import is_known

    kept = KeptFiles(home_location() or default_home())
    folder = None if workspace is None else workspace_path(workspace)
    for one in filter(is_known, kept.agents()):
        if agent in (None, one):
            yield from kept.gone(one, folder)


def _tell(number: int, total: int, source: Source) -> None:
    progress("importing", number, total)


def _row(item: Imported) -> dict[str, object]:
    return {
        "id": item.id, "agent": item.source.agent, "source": item.source.path, "key": item.source.key,
        "added": item.added, "problems": item.problems, "copy_of": item.copy_of,
    }  # fmt: skip


def _print(imported: list[Imported]) -> None:
    here = [item for item in imported if item.id]
    changed = [item for item in here if item.added or item.problems]
    if changed:
        head = ("SESSION", "ADDED", "PROBLEMS", "SOURCE")
        rows = ((item.id, f"{item.added:,}", str(len(item.problems) or ""), item.source.path) for item in changed)
        for line in table(head, rows, right=(1, 2), paths=3):
            print(line)
    tell_problems((f"{item.source.path}", item.problems) for item in here)
    copies = sum(item.copy_of is not None for item in here)
    new = sum(item.added > 0 for item in here)
    same = f", {count(len(here) - new - copies, 'session')} as before" if len(here) > new + copies else ""
    same += f", {count(copies, 'copy', 'copies')} of sessions that are here" if copies else ""
    nothing = "no sessions found; `turnlog formats` says where they are looked for"
    print(f"{count(new, 'session')} with something new{same}" if imported else nothing, file=sys.stderr)
