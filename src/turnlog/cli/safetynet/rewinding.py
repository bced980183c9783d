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

from turnlog.cli.draw.preview import path_shown, preview, totals
from turnlog.cli.draw.text import path_of
from turnlog.cli.fields.plan import json_plan
from turnlog.cli.frame.agentshell import is_agents, note_agent, refuse_agent
from turnlog.cli.frame.command import Option
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import COUNTS, DRY_RUN, SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import Exit
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.notes import note, tell, warn
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.frame.question import confirm, refuse_without_terminal
from turnlog.cli.pick.session import agent_process, refuse_interrupted, session_to_change
from turnlog.errors import Conflict
from turnlog.log.entry import Head
from turnlog.machine.folder import is_here, workspace_path
from turnlog.reader.takeback import BACK, undisturbed
from turnlog.session import Home, Session
from turnlog.view.number import count, rewind_outcome
from turnlog.view.visible import one_line, quoted
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


FORCE_OPTION = Option("--force", "Also overwrite what others changed.")


class RewindOptions(Struct, frozen=True):
    """What was asked for beside the rewind itself."""

    dry_run: bool
    yes: bool
    as_json: bool


class PlannedRewind(Struct, frozen=True):
    """A rewind, undo or redo that may be shown and done."""

    action: str
    """rewind, undo or redo."""
    plan: Plan
    run: Callable[[], Head]
    """Changes the files, and adds the entry."""
    notes: list[str] = []
    """What else happens, in words."""
    json_fields: dict[str, Any] = {}
    moves_conversation: bool = True
    """Whether there is something to do although no file changes."""


def take_back(action: Literal["undo", "redo"], word: str | None, options: RewindOptions, *, force: bool) -> None:
    """Undo or redo the last rewind of a session."""
    with this_home() as home:
        session = session_to_change(home, word, files=True)
        refuse_interrupted(session)
        if force and not options.dry_run:
            refuse_agent(f"{action} --force")
        with progress_line():
            plan = (session.plan_undo if action == "undo" else session.plan_redo)(force=force)
        run = partial(session.undo if action == "undo" else session.redo, force=force, plan=plan.digest)
        show_and_rewind(home, session, PlannedRewind(action, plan, run), options)


def show_and_rewind(home: Home, session: Session, planned: PlannedRewind, options: RewindOptions) -> None:
    """Show the plan, ask, do it and report."""
    is_decided = options.yes or options.dry_run
    if not is_decided and (options.as_json or not is_agents()):  # an agent gets the plan, and then the refusal
        _refuse_unasked(planned.action, as_json=options.as_json)
    if options.as_json:
        _print_json(home, session, planned, dry_run=options.dry_run)
        return
    _print_plan(session, planned, everything=options.dry_run and not sys.stdout.isatty())
    if options.dry_run:
        return
    if not planned.moves_conversation and not planned.plan.to_do:
        print("nothing to do")
        return
    if not options.yes:
        _refuse_unasked(planned.action, as_json=False)
        confirm(f"{planned.action}?", nothing="nothing was changed")
    head = carry_out(home, session, planned.action, planned.run)
    report(session, planned.action, head)
    exit_for_problems(session, head)


def _print_json(home: Home, session: Session, planned: PlannedRewind, *, dry_run: bool) -> None:
    head = None if dry_run else carry_out(home, session, planned.action, planned.run)
    fields = {"session": session.id, "action": planned.action, **planned.json_fields, "dry_run": dry_run}
    print_json({**fields, **json_plan(planned.plan), **json_outcome(session, head)})
    exit_for_problems(session, head)


def _print_plan(session: Session, planned: PlannedRewind, *, everything: bool) -> None:
    plan = planned.plan
    for line in preview(plan, session.workspace, everything=everything):
        print(line)
    if plan.steps:
        print()
    if plan.steps and session.workspace and session.workspace != workspace_path("."):
        print(one_line(f"paths are from {session.workspace}"))
    notes = [*planned.notes, *running_agent_notes(session), *([f"note: {plan.note}"] if plan.note else [])]
    for line in [totals(plan), *notes]:
        print(one_line(line))
    conflicts = plan.of(CONFLICT)
    if conflicts:
        print("--force overwrites what is in conflict")
    if planned.action == "rewind" and any(step.is_doubtful for step in conflicts):
        print("--only PATH takes back changes without a known owner")


def _refuse_unasked(action: str, *, as_json: bool) -> None:
    hint = "--yes does it without asking, --dry-run only shows what it would do"
    refuse_without_terminal(f"{action} asks before it changes anything", as_json=as_json, hint=hint)


def running_agent_notes(session: Session) -> list[str]:
    """Return what to do if the agent still runs: its files go back, but it remembers what it did."""
    pid = agent_process(session)
    if not pid:
        return []
    name = quoted(session.handle)
    return [
        f"note: {session.agent} (process {pid}) is still running and remembers this: quit it, then run",
        f"turnlog resume {name} --exec",
    ]


def carry_out(home: Home, session: Session, action: str, run: Callable[[], Head]) -> Head:
    """Change the files while nothing is imported into the session; it notes which agent asked for it."""
    try:
        with progress_line(), undisturbed(home, session):
            note_agent(session, action)
            return run()
    except KeyboardInterrupt:
        if session.interrupted():
            tell("")  # behind the `^C` of the terminal
            tell("stopped half-way: `turnlog rewind --continue` finishes it, `--abort` takes it back")
        raise


def report(session: Session, action: str, head: Head) -> None:
    """Print what was done, what could not be, and how to take it back."""
    unchanged = [(outcome.step, f"stays as it is: {one_line(outcome.problem)}") for outcome in session.problems()]
    incomplete = [(outcome.step, f"is back, but {one_line(outcome.note)}") for outcome in session.incomplete()]
    for rows in (unchanged, incomplete):
        for step, problem in rows[:_PROBLEMS_SHOWN]:
            warn(f"{path_shown(step, session.workspace)} {problem}", exact=True)
        if len(rows) > _PROBLEMS_SHOWN:
            warn(f"{count(len(rows) - _PROBLEMS_SHOWN, 'more path')} like that")
    again = BACK.get(head.why)
    files = f": {rewind_outcome(head.files)}" if head.files else ""
    print(f"{action} done, entry {head.seq}{files}")
    if again:
        print(f"`turnlog {again}` takes it back")
    if not is_here() and session.workspace and (path := Path(os.fsdecode(path_bytes(session.workspace)))).is_dir():
        sys.stdout.flush()
        where = shlex.quote(path_of(os.fsencode(path)))
        note(f"this shell is still in the folder that was deleted: `cd {where}`", exact=True)


def exit_for_problems(session: Session, head: Head | None) -> None:
    """Raise `Exit` with the exit code of a conflict if some paths are not as the plan said."""
    if head is not None and session.problems():
        raise Exit(Conflict.exit_code)


def json_outcome(session: Session, head: Head | None) -> dict[str, Any]:
    """Return the fields about what was done; without an entry, nothing was."""
    if head is None:
        return {"done": False, "entry": None, "result": {}, "problems": [], "incomplete": []}
    problems = [{"path": o.step.path, "root": o.step.root, "problem": o.problem} for o in session.problems()]
    notes = [{"path": o.step.path, "root": o.step.root, "note": o.note} for o in session.incomplete()]
    return {"done": True, "entry": head.seq, "result": head.files, "problems": problems, "incomplete": notes}
