"""Rewind, undo and redo: show the plan, ask, do it, and say how to take it back."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from turnlog.cli.draw.preview import as_plain, path_shown, preview, totals
from turnlog.cli.draw.question import NO, ask, refuse_without_terminal
from turnlog.cli.draw.text import count, one_line, path_of
from turnlog.cli.frame import shape
from turnlog.cli.frame.agentshell import is_agents, note_agent, refuse_agent
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Option
from turnlog.cli.frame.exitcode import Left
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import patience
from turnlog.cli.frame.shape import COUNTS, DRY_RUN, SESSION
from turnlog.cli.pick.session import agent_of, refuse_interrupted, session_to_change
from turnlog.errors import Conflict
from turnlog.log.entry import Head
from turnlog.machine.folder import is_here, workspace_path
from turnlog.reader.takeback import BACK, undisturbed
from turnlog.session import Home, Session
from turnlog.view.number import came_out
from turnlog.workspace.plan import CONFLICT, Plan
from turnlog.workspace.tree import path_bytes

_PROBLEMS_SHOWN = 20
_PATH = {"path": shape.text(), "root": shape.text()}
REWOUND = {
    "session": SESSION,
    "action": shape.text("rewind, undo or redo"),
    "dry_run": DRY_RUN,
    "note": shape.text("why files are not changed; otherwise empty"),
    "counts": COUNTS,
    "steps": shape.items("a path each", {"action": shape.text(), **_PATH, "reason": shape.text()}),
    "done": shape.flag("whether it was done"),
    "entry": shape.number("the new entry", null=True),
    "result": shape.one("the number of paths for each outcome"),
    "problems": shape.each("what could not be done", {**_PATH, "problem": shape.text()}),
    "incomplete": shape.each("files restored without their owner or an attribute", {**_PATH, "note": shape.text()}),
}
"""What rewind, undo and redo say with `--json`."""


DRY_RUN_OPTION = Option("--dry-run -n", "Only show what would be done.")
FORCE_OPTION = Option("--force", "Also overwrite what others changed.")
YES_OPTION = Option("--yes -y", "Do not ask.")


class How(Struct, frozen=True):
    """How a move is to be made."""

    dry_run: bool
    yes: bool
    as_json: bool


def take_back(what: Literal["undo", "redo"], word: str | None, how: How, *, force: bool) -> None:
    """Undo or redo the last rewind of a session."""
    with this_home() as home:
        session = session_to_change(home, word, files=True)
        refuse_interrupted(session)
        if force and not how.dry_run:
            refuse_agent(f"`{what} --force`")
        with patience():
            plan = (session.plan_undo if what == "undo" else session.plan_redo)(force=force)
        act = partial(session.undo if what == "undo" else session.redo, force=force, plan=plan.digest)
        show_and_rewind(home, session, what, plan, act, how, words=[], more={"dry_run": how.dry_run})


def show_and_rewind(
    home: Home,
    session: Session,
    what: str,
    plan: Plan,
    act: Callable[[], Head],
    how: How,
    *,
    words: list[str],
    more: dict[str, Any],
    is_idle: bool = False,
) -> None:
    """Preview, question, action, report. `words` say what else happens; `is_idle` that nothing else does."""
    is_inside = is_agents()
    if not how.yes and not how.dry_run and not is_inside:
        _refuse_unasked(what, as_json=how.as_json)
    if how.as_json:
        head = None if how.dry_run else _act(home, session, what, act)
        print_json({"session": session.id, "action": what, **more, **as_plain(plan), **_plain(session, head)})
        _exit_for_problems(session, head)
        return
    for line in preview(plan, session.workspace, everything=how.dry_run and not sys.stdout.isatty()):
        print(line)
    if plan.steps:
        print()
    if plan.steps and session.workspace and session.workspace != workspace_path("."):
        print(one_line(f"paths are from {session.workspace}"))
    words = [*words, *still_open(session)]
    for line in [totals(plan), *words, *([f"note: {plan.note}"] if plan.note else [])]:
        print(one_line(line))
    conflicts = plan.of(CONFLICT)
    if conflicts:
        print("--force overwrites what is in conflict")
    if what == "rewind" and any(step.is_doubtful for step in conflicts):
        print("--only PATH takes back changes without a known owner")
    if how.dry_run:
        return
    if is_idle and not plan.to_do:
        print("nothing to do")
        return
    if not how.yes and is_inside:  # the plan first, then the word
        _refuse_unasked(what, as_json=how.as_json)
    if not how.yes and not ask(f"{what}?"):
        print("nothing was changed", file=sys.stderr)
        raise Left(NO)
    head = _act(home, session, what, act)
    report(session, what, head)
    _exit_for_problems(session, head)


def _refuse_unasked(what: str, *, as_json: bool) -> None:
    hint = "--yes does it without asking, --dry-run only shows what it would do"
    refuse_without_terminal(f"{what} asks before it changes anything", as_json=as_json, hint=hint)


def still_open(session: Session) -> list[str]:
    """What to do where the agent is still there: its files go back, and it remembers what it did."""
    pid = agent_of(session)
    if not pid:
        return []
    name = one_line(session.handle)
    return [
        f"note: {session.agent} (process {pid}) is still open and remembers it: leave it, then",
        f"turnlog resume {name} --exec",
    ]


def _act(home: Home, session: Session, what: str, act: Callable[[], Head]) -> Head:
    try:
        with patience(), undisturbed(home, session):
            note_agent(session, what)
            return act()
    except KeyboardInterrupt:
        if session.interrupted():
            print(
                "\nstopped half-way: `turnlog rewind --continue` finishes it, `--abort` takes it back", file=sys.stderr
            )
        raise


def report(session: Session, what: str, head: Head) -> None:
    """What was done, what could not be, and how to take it back."""
    stays = [(outcome.step, f"stays as it is: {one_line(outcome.problem)}") for outcome in session.problems()]
    back = [(outcome.step, f"is back, but {one_line(outcome.note)}") for outcome in session.incomplete()]
    for rows in (stays, back):
        for step, problem in rows[:_PROBLEMS_SHOWN]:
            print(f"warning: {path_shown(step, session.workspace)} {problem}", file=sys.stderr)
        if len(rows) > _PROBLEMS_SHOWN:
            print(f"warning: {count(len(rows) - _PROBLEMS_SHOWN, 'more path')} like that", file=sys.stderr)
    again = BACK.get(head.why)
    files = f": {came_out(head.files)}" if head.files else ""
    print(f"{what} done, entry {head.seq}{files}")
    if again:
        print(f"`turnlog {again}` takes it back")
    if not is_here() and session.workspace and (path := Path(os.fsdecode(path_bytes(session.workspace)))).is_dir():
        sys.stdout.flush()
        where = shlex.quote(path_of(os.fsencode(path)))
        print(f"note: this shell is still in the folder that was deleted: `cd {where}`", file=sys.stderr)


def _exit_for_problems(session: Session, head: Head | None) -> None:
    if head is not None and session.problems():
        raise Left(Conflict.exit_code)


def _plain(session: Session, head: Head | None) -> dict[str, Any]:
    if head is None:
        return {"done": False, "entry": None, "result": {}, "problems": [], "incomplete": []}
    problems = [{"path": o.step.path, "root": o.step.root, "problem": o.problem} for o in session.problems()]
    notes = [{"path": o.step.path, "root": o.step.root, "note": o.note} for o in session.incomplete()]
    return {"done": True, "entry": head.seq, "result": head.files, "problems": problems, "incomplete": notes}
