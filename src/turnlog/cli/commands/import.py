"""`turnlog import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnlog.cli.draw.foreignproblems import tell_problems
from turnlog.cli.draw.table import table
from turnlog.cli.fields.source import PROBLEM
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import INTERRUPTED, Exit, UsageError
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.progress import finish_before_interrupt, progress_line, show_count
from turnlog.cli.pick.session import names
from turnlog.errors import TurnlogError, Unavailable
from turnlog.machine.folder import workspace_path
from turnlog.reader.naming.name import is_path
from turnlog.session.interior import interior
from turnlog.view.number import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnlog.exchange.importing.sessionimport import Imported
    from turnlog.formats import Source
    from turnlog.session import Home

GROUP = "Share", 2
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
    Argument("paths", "[PATH|SESSION]...", kind="file"),
    Option("--agent -a NAME", "Only sessions of that agent; without a PATH, from its own folder.", kind="agent"),
    Option("--all", "From the folders of all known agents.", name="everything"),
    Option("--workspace -w PATH", "Only sessions about that folder.", kind="folder"),
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
        raise UsageError("give a PATH, --agent or --all; `turnlog formats` lists the agents")
    with this_home() as home, progress_line():
        outcome = _import(home, _wanted(home, paths, agent, workspace))
    if as_json:
        print_json({"sessions": [_json_imported(item) for item in outcome.imported]})
    elif outcome.imported or outcome.error is None:
        _print(outcome.imported)
    if outcome.error is not None:
        outcome.error.message += f"; {count(max(outcome.left, 1), 'session')} not imported"
        raise outcome.error
    if outcome.is_interrupted:
        tell(f"interrupted: {count(outcome.left, 'session')} left")
        raise Exit(INTERRUPTED)
    lost = [item for item in outcome.imported if not item.id]
    if lost:
        first = f"{lost[0].source.path}: {lost[0].problems[-1].what}"
        raise Unavailable(first if len(lost) == 1 else f"{len(lost)} sessions were not imported, the first {first}")


class _Outcome(NamedTuple):
    """How far an import came, and what stopped it."""

    imported: list[Imported]
    left: int
    """How many of the sessions that were asked for are not imported."""
    error: TurnlogError | None
    is_interrupted: bool


def _wanted(home: Home, paths: tuple[str, ...], agent: str | None, workspace: str | None) -> list[Source]:
    """Return the sessions that are meant, each once."""
    from turnlog.exchange.source import sources

    wanted: list[Source] = []
    for word in paths or (None,):
        named = None if word is None or is_path(word) else names(home).foreign(word)
        source = None if named is None else named.source
        wanted += sources(word, agent=agent, workspace=workspace) if source is None else [source]
    if not paths:
        wanted += _deleted(agent, workspace)
    return list(dict.fromkeys(wanted))


def _import(home: Home, wanted: list[Source]) -> _Outcome:
    from turnlog.exchange.importing.run import import_all

    imported: list[Imported] = []
    stopped_by: TurnlogError | None = None
    with finish_before_interrupt("this session is finished first") as is_enough:
        try:
            for item in import_all(interior(home).creator, wanted, _show):
                imported.append(item)
                if is_enough():
                    break
        except TurnlogError as error:
            stopped_by = error
        # Parents that nobody asked for are imported as well, so what is left is not a matter of numbers.
        left = len(set(wanted) - {item.source for item in imported})
        return _Outcome(imported, left, stopped_by, is_enough() and left > 0)


def _deleted(agent: str | None, workspace: str | None) -> Iterator[Source]:
    """Yield the sessions that their agents deleted, and of which a copy is kept."""
    from turnlog.exchange.keeping.keptfile import KeptFiles
    from turnlog.formats import is_known

    kept = KeptFiles(home_location())
    folder = None if workspace is None else workspace_path(workspace)
    for name in filter(is_known, kept.agents()):
        if agent in (None, name):
            yield from kept.gone(name, folder)


def _show(number: int, total: int, source: Source) -> None:
    show_count("importing", number, total)


def _json_imported(item: Imported) -> dict[str, object]:
    return {
        "id": item.id, "agent": item.source.agent, "source": item.source.path, "key": item.source.key,
        "added": item.added, "problems": item.problems, "copy_of": item.copy_of,
    }  # fmt: skip


def _print(imported: list[Imported]) -> None:
    stored = [item for item in imported if item.id]
    changed = [item for item in stored if item.added or item.problems]
    if changed:
        head = ("SESSION", "ADDED", "PROBLEMS", "SOURCE")
        rows = ((item.id, f"{item.added:,}", str(len(item.problems) or ""), item.source.path) for item in changed)
        for line in table(head, rows, right=(1, 2), paths=3):
            print(line)
    tell_problems((f"{item.source.path}", item.problems) for item in stored)
    copies = sum(item.copy_of is not None for item in stored)
    new = sum(item.added > 0 for item in stored)
    same = f", {count(len(stored) - new - copies, 'session')} as before" if len(stored) > new + copies else ""
    same += f", {count(copies, 'copy', 'copies')} of sessions that are here" if copies else ""
    nothing = "no sessions found; `turnlog formats` says where they are looked for"
    tell(f"{count(new, 'session')} with something new{same}" if imported else nothing)
