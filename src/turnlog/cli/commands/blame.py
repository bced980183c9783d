"""`turnlog blame`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.authorship import IN_WORDS, blamed_lines, session_name, turn_table
from turnlog.cli.draw.table import Column, grid
from turnlog.cli.fields.authorship import AUTHOR, LINE, json_author, json_line
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.encoding import encode_json
from turnlog.cli.frame.document.jsonline import write_json
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.notes import note, tell
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.safetynet.fileline import ask_after_catching_up, file_and_lines
from turnlog.view.number import count, dollars
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from turnlog.blame.authorship import Blame
    from turnlog.blame.commit import CommitBlame

GROUP = "Safety net", 10
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
            "cost_micros": shape.number("null if unknown", null=True),
            "unpriced": shape.texts("models without a known price"),
        },
    ),
    "[others]": shape.one("how many of its lines were not written by one turn, by `why`"),
    "[files]": shape.each(
        "with --commit: the lines that it added", {"path": shape.text(), "lines": shape.each("", LINE)}, role="aside"
    ),
}


@declare(
    Argument("file", "FILE[:LINE[,LINE]]", required=False, kind="file"),
    Option("--lines -L A,B", "Only lines A to B; A,+N for N lines.", name="chosen"),
    Option("--commit REV", "The turns whose lines a git commit added, and what they cost.", name="revision"),
    Option("--to", "Print an Agent Trace record instead.", choices=("agent-trace",)),
    exclusive=(("--to", "--json"),),
)
def command(file: str | None, chosen: str | None, revision: str | None, to: str | None, as_json: bool) -> None:
    """Show which turn of which session wrote each line of a file.

    It compares the checkpoints of all sessions of the folder: a change between the two checkpoints of a turn belongs to
    that turn. A line that was moved, a file that was renamed, and lines that git or a rewind brought back keep their
    author. A line without a turn shows the reason: "before" the first checkpoint, "between" turns, "since" the last
    checkpoint, or "git" with the commit that brought it. If turns overlapped, all of them are named. `turnlog why
    FILE:LINE` explains one line.

    With --commit, FILE is optional: without it, all lines that the commit added are shown.

    \b
    turnlog blame src/main.py        every line
    turnlog blame src/main.py:12,20  some of them
    turnlog blame --commit HEAD      the turns behind a commit, and what they cost
    turnlog blame src/main.py --to agent-trace
    """
    if file is None and revision is None:
        raise UsageError("missing argument 'FILE[:LINE[,LINE]]'")
    if file is None and chosen is not None:
        raise UsageError("-L needs a FILE")
    name, lines = (None, None) if file is None else file_and_lines(file, chosen)
    if revision is not None and lines is not None:
        raise UsageError("--commit is about all lines of a file")
    with this_home() as home:
        if revision is not None:
            with progress_line():
                ask = partial(home.blame_commit, revision, name)
                of_commit = ask_after_catching_up(
                    home, ask, lambda blame: (line for file in blame.files for line in file.lines)
                )
            _print_commit(of_commit, to, as_json=as_json)
            return
        with progress_line():
            blame = ask_after_catching_up(home, partial(home.blame, name or "", lines=lines), lambda blame: blame.lines)
        _print(blame, to, as_json=as_json)


def _print(blame: Blame, to: str | None, *, as_json: bool) -> None:
    if to is not None:
        from turnlog.blame.trace import project_of, trace_record

        write_json(encode_json(trace_record([blame], project_of(blame.path), blame.revision)))
    elif as_json:
        lines = [json_line(line) for line in blame.lines]
        print_json({"path": blame.path, "is_ignored": blame.is_ignored, "lines": lines})
    else:
        for line in blamed_lines(blame.lines):
            print(line)
        _print_table(turn_table(blame.lines))
    if blame.is_ignored:
        note(f"git ignores {blame.path}; what is in it stays in this home")
    if not blame.lines:
        tell(f"{blame.path} is empty")


def _print_table(lines: list[str]) -> None:
    for number, line in enumerate(lines):
        print(f"\n{line}" if not number else line)


def _print_commit(blame: CommitBlame, to: str | None, *, as_json: bool) -> None:
    if to is not None:
        from turnlog.blame.trace import trace_record

        write_json(encode_json(trace_record(blame.files, blame.top, blame.commit)))
    elif as_json:
        turns: list[dict[str, Any]] = [
            {
                **json_author(turn.author),
                "lines": turn.lines,
                "cost_micros": turn.cost_micros,
                "unpriced": turn.unpriced,
            }
            for turn in blame.turns
        ]
        files = [{"path": file.path, "lines": [json_line(line) for line in file.lines]} for file in blame.files]
        document = {"commit": blame.commit, "subject": blame.subject, "turns": turns, "others": blame.others}
        print_json({**document, "files": files})
    else:
        _print_turns(blame)


def _print_turns(blame: CommitBlame) -> None:
    total = sum(len(file.lines) for file in blame.files)
    where = f"{count(total, 'line')} added in {count(len(blame.files), 'file')}"
    print(one_line(f"commit {blame.commit[:9]} {blame.subject}: {where}"))
    if blame.turns:
        turns = blame.turns
        _print_table(
            grid(
                [
                    Column("SESSION", [session_name(turn.author) for turn in turns]),
                    Column("TURN", [str(turn.author.turn) for turn in turns], right=True),
                    Column("LINES", [f"{turn.lines:,}" for turn in turns], right=True),
                    Column("COST", [_cost(turn.cost_micros, turn.unpriced) for turn in turns], right=True),
                    Column("AGENT", [turn.author.agent or "" for turn in turns], drop=1),
                    Column("ENTRY", [str(turn.author.entry) for turn in turns], right=True, drop=2),
                    Column("PROMPT", [turn.author.prompt or "" for turn in turns], least=12),
                ]
            )
        )
    for why, number in sorted(blame.others.items()):
        print(f"{count(number, 'line')} {IN_WORDS.get(why, why)}")
    unknown = sum(turn.cost_micros is None or bool(turn.unpriced) for turn in blame.turns)
    if unknown:
        tell(f"what {count(unknown, 'turn')} cost is not known, or not all of it")


def _cost(micros: int | None, unpriced: list[str]) -> str:
    return "?" if micros is None else dollars(micros, is_partial=bool(unpriced))
