"""`turnlog blame`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from turnlog.cli.draw.authorship import (
    AUTHOR,
    IN_WORDS,
    LINE,
    author_fields,
    blamed_lines,
    line_fields,
    session_name,
    turn_table,
)
from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.command import patience, print_json, shared, this_home, to_json, write_json
from turnlog.cli.pick.line import caught_up, file_and_lines
from turnlog.view.number import count, dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnlog.blame.authorship import Blame
    from turnlog.blame.commit import CommitBlame

_AUTHOR = "`session`, `turn`, `agent`, `model`, `at`, `prompt`, `entry`"
CHANGES = shape.NOTHING
FIELDS = {
    "[path]": shape.text("the file, from the root; not with --commit"),
    "[is_ignored]": shape.flag("whether git would ignore it"),
    "[lines]": shape.items("a line each", LINE),
    "[commit]": shape.text("with --commit: the commit"),
    "[subject]": shape.text("the first line of its message"),
    "[turns]": shape.items(
        "the turns whose lines it added",
        {
            **AUTHOR,
            "lines": shape.number(),
            "cost_micros": shape.number("null where it is not known", null=True),
            "unpriced": shape.texts("models without a known price"),
        },
    ),
    "[others]": shape.one("how many of its lines are not one turn's, by why"),
    "[files]": shape.each(
        "with --commit: the lines that it added", {"path": shape.text(), "lines": shape.each("", LINE)}, role="aside"
    ),
}


@click.command()
@click.argument("file", metavar="FILE[:LINE[,LINE]]", required=False)
@click.option("--lines", "-L", "chosen", metavar="A,B", help="Only lines A to B; A,+N for N lines.")
@click.option(
    "--commit", "revision", metavar="REV", help="The turns whose lines a git commit added, and what they cost."
)
@click.option("--to", type=click.Choice(["agent-trace"]), help="Print an Agent Trace record instead.")
@shared
def command(file: str | None, chosen: str | None, revision: str | None, to: str | None, as_json: bool) -> None:
    """Tell which turn of which session wrote each line of a file.

    The checkpoints of all sessions of the folder say it: what changed between the two of a turn is the turn's. A line
    that was moved, a file that was renamed, and what git or a rewind brought back keep their author. A line that is
    no turn's says why: "before" the first checkpoint, "between" turns, "since" the last checkpoint, or "git" with the
    commit that brought it. Where turns overlapped, all of them are named. `turnlog why FILE:LINE` tells more of one.

    With --commit, FILE may be left out: then it is about all that the commit added.

    \b
    turnlog blame src/main.py        every line
    turnlog blame src/main.py:12,20  some of them
    turnlog blame --commit HEAD      the turns behind a commit, and what they cost
    turnlog blame src/main.py --to agent-trace
    """
    if file is None and revision is None:
        raise click.UsageError("Missing argument 'FILE[:LINE[,LINE]]'.")
    if to is not None and as_json:
        raise click.UsageError("either --to or --json")
    if file is None and chosen is not None:
        raise click.UsageError("-L needs a FILE")
    name, lines = (None, None) if file is None else file_and_lines(file, chosen)
    if revision is not None and lines is not None:
        raise click.UsageError("--commit is about all lines of a file")
    with this_home() as home:
        if revision is not None:
            with patience():
                ask = partial(home.blame_commit, revision, name)
                of_commit = caught_up(home, ask, lambda found: (line for file in found.files for line in file.lines))
            _print_commit(of_commit, to, as_json=as_json)
            return
        with patience():
            found = caught_up(home, partial(home.blame, name or "", lines=lines), lambda found: found.lines)
        _print(found, to, as_json=as_json)


def _print(found: Blame, to: str | None, *, as_json: bool) -> None:
    if to is not None:
        from turnlog.blame.trace import project_of, trace_record

        write_json(to_json(trace_record([found], project_of(found.path), found.revision)))
    elif as_json:
        lines = [line_fields(line) for line in found.lines]
        print_json({"path": found.path, "is_ignored": found.is_ignored, "lines": lines})
    else:
        for line in blamed_lines(found.lines):
            print(line)
        _print_table(turn_table(found.lines))
    if found.is_ignored:
        print(one_line(f"note: git ignores {found.path}; what is in it stays in this home"), file=sys.stderr)
    if not found.lines:
        print(one_line(f"{found.path} is empty"), file=sys.stderr)


def _print_table(lines: list[str]) -> None:
    for number, line in enumerate(lines):
        print(f"\n{line}" if not number else line)


def _print_commit(found: CommitBlame, to: str | None, *, as_json: bool) -> None:
    if to is not None:
        from turnlog.blame.trace import trace_record

        write_json(to_json(trace_record(found.files, found.top, found.commit)))
    elif as_json:
        turns: list[dict[str, Any]] = [
            {**author_fields(one.author), "lines": one.lines, "cost_micros": one.cost_micros, "unpriced": one.unpriced}
            for one in found.turns
        ]
        files = [{"path": one.path, "lines": [line_fields(line) for line in one.lines]} for one in found.files]
        told = {"commit": found.commit, "subject": found.subject, "turns": turns, "others": found.others}
        print_json({**told, "files": files})
    else:
        _print_turns(found)


def _print_turns(found: CommitBlame) -> None:
    total = sum(len(file.lines) for file in found.files)
    where = f"{count(total, 'line')} added in {count(len(found.files), 'file')}"
    print(one_line(f"commit {found.commit[:9]} {found.subject}: {where}"))
    if found.turns:
        turns = found.turns
        _print_table(
            grid(
                [
                    Column("SESSION", [session_name(one.author) for one in turns]),
                    Column("TURN", [str(one.author.turn) for one in turns], right=True),
                    Column("LINES", [f"{one.lines:,}" for one in turns], right=True),
                    Column("COST", [_cost(one.cost_micros, one.unpriced) for one in turns], right=True),
                    Column("AGENT", [one.author.agent or "" for one in turns], drop=1),
                    Column("ENTRY", [str(one.author.entry) for one in turns], right=True, drop=2),
                    Column("PROMPT", [one.author.prompt or "" for one in turns], least=12),
                ]
            )
        )
    for why, number in sorted(found.others.items()):
        print(f"{count(number, 'line')} {IN_WORDS.get(why, why)}")
    unknown = sum(one.cost_micros is None or bool(one.unpriced) for one in found.turns)
    if unknown:
        print(f"what {count(unknown, 'turn')} cost is not known, or not all of it", file=sys.stderr)


def _cost(micros: int | None, unpriced: list[str]) -> str:
    return "?" if micros is None else dollars(micros, is_partial=bool(unpriced))
