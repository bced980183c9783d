"""`turnlog rewind`."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import NamedTuple

from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSION_OPTION, YES_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.pick.session import refuse_interrupted, session_to_change
from turnlog.cli.safetynet.rewinding import (
    FORCE_OPTION,
    REWOUND,
    PlannedRewind,
    RewindOptions,
    carry_out,
    exit_for_problems,
    json_outcome,
    report,
    show_and_rewind,
)
from turnlog.errors import NotFound
from turnlog.log.entry import Head
from turnlog.machine.folder import named_here
from turnlog.reader.place import Place, checkpoint_at, place_of
from turnlog.reader.takeback import NO_CHECKPOINT, ConversationMove, conversation_move
from turnlog.session import Home, Session
from turnlog.view.number import count
from turnlog.workspace.plan import Plan
from turnlog.workspace.tree import path_text

GROUP = "Safety net", 7
CHANGES = shape.WORKSPACE
_PLANNED = ("note", "counts", "steps", "target", "checkpoint", "files", "conversation")
"""Fields about the plan: `--continue` and `--abort` make none."""
_FIELDS = {
    **REWOUND,
    "target": shape.number("the entry that it goes back to"),
    "checkpoint": shape.number("the checkpoint of the files", null=True),
    "files": shape.flag("whether files are rewound"),
    "conversation": shape.flag("whether the conversation is rewound"),
}
FIELDS = {f"[{name}]" if name in _PLANNED else name: field for name, field in _FIELDS.items()}


@declare(
    Argument("target", "[TARGET]"),
    DRY_RUN_OPTION,
    Option("--files", "Only the files; the conversation stays.", name="only_files"),
    Option("--conversation", "Only the conversation; no file is touched.", name="only_conversation"),
    Option("--only PATH", "Only this file or folder (may be repeated); implies --files.", repeatable=True, kind="file"),
    FORCE_OPTION,
    YES_OPTION,
    Option("--continue", "Finish a rewind that was interrupted.", name="finish"),
    Option("--abort", "Take back what an interrupted rewind has done so far."),
    SESSION_OPTION,
    exclusive=(
        ("--conversation", "--files"),
        ("--conversation", "--only"),
        ("--continue", "--abort"),
        ("--continue", "--dry-run"),
        ("--abort", "--dry-run"),
    ),
)
def command(
    target: str | None,
    dry_run: bool,
    only_files: bool,
    only_conversation: bool,
    only: tuple[str, ...],
    force: bool,
    yes: bool,
    finish: bool,
    abort: bool,
    session: str | None,
    as_json: bool,
) -> None:
    """Take files and conversation back to an earlier point.

    TARGET is an entry (12: the last checkpoint at or before it), "turn:3" for the point before turn 3 began, or the
    label of a checkpoint ("label:12" for one that looks like something else). The default is the point before the last
    turn; without turns, the last checkpoint made by hand.

    Only files that the session's own turns changed are touched, and only if they are still as those turns left them. A
    file that others changed is a conflict and stays, unless --force is given. Changes after a turn was cut short have
    no known owner: they stay as well, unless --only names them. Going back to a checkpoint made by hand, with no turn
    since, takes back everything since. Files that are not covered always stay. The command shows a preview and asks;
    before it touches anything, it saves everything in a checkpoint, so that `turnlog undo` takes it back.

    \b
    turnlog rewind                       take back the last turn
    turnlog rewind turn:2 --dry-run      what it would do to go back before turn 2
    turnlog rewind before-lunch --files  the files as of that checkpoint
    turnlog rewind 12 --only src --yes   one folder, without a question
    """
    _check(target, only_files or bool(only), only_conversation, finish, abort)
    if force and not dry_run:
        refuse_agent("rewind --force")
    with this_home() as home:
        rewound = session_to_change(home, session, files=True)
        if finish or abort:
            _finish(home, rewound, abort=abort, as_json=as_json)
            return
        refuse_interrupted(rewound)
        scope = _Scope(not only_conversation, not only_files and not only, only, force)
        planned = _plan(rewound, place_of(rewound, target), scope)
        show_and_rewind(home, rewound, planned, RewindOptions(dry_run, yes, as_json))


class _Scope(NamedTuple):
    """Which files are rewound, and whether the conversation is."""

    files: bool
    conversation: bool
    only: tuple[str, ...]
    """Of the files only these; all where none is named."""
    force: bool


def _plan(session: Session, goal: Place, scope: _Scope) -> PlannedRewind:
    checkpoint = checkpoint_at(session, goal) if scope.files else None
    if scope.files and checkpoint is None and not scope.conversation:
        raise NotFound(f"there is no checkpoint at or before {goal.words}", hint="see `turnlog checkpoints`")
    only = [_absolute(path) for path in scope.only]
    if session.workspace in only:
        only = []
    plan = Plan([], NO_CHECKPOINT if scope.files else "")
    if checkpoint is not None:
        with progress_line():
            plan = session.plan_rewind(goal.seq, only=only, force=scope.force)
    run = partial(
        session.rewind,
        goal.seq,
        files=scope.files,
        conversation=scope.conversation,
        only=only,
        force=scope.force,
        plan=None if checkpoint is None else plan.digest,
        after=session.head,
    )
    move = conversation_move(session, goal.seq) if scope.conversation else ConversationMove()
    notes = [f"target: {goal.words}"]
    if move.leaving:
        notes.append(f"conversation: {count(move.leaving, 'message')} left behind as a branch")
    if move.returning:
        notes.append(f"conversation: {count(move.returning, 'message')} back from another branch")
    fields = {"target": goal.seq, "checkpoint": checkpoint.seq if checkpoint else None}
    fields |= {"files": scope.files, "conversation": scope.conversation}
    return PlannedRewind("rewind", plan, run, notes, fields, moves_conversation=any(move))


def _check(target: str | None, files: bool, conversation: bool, finish: bool, abort: bool) -> None:
    if (finish or abort) and (target is not None or files or conversation):
        raise UsageError(f"{'--continue' if finish else '--abort'} takes no target and no choice of files")


def _finish(home: Home, session: Session, *, abort: bool, as_json: bool) -> None:
    def run() -> Head:
        entry = session.finish_rewind(abort=abort)
        if entry is None:  # another process has finished it meanwhile
            raise none
        return entry

    none = NotFound(f"no rewind of session {session.handle} was interrupted")
    if not session.interrupted():
        raise none
    entry = carry_out(home, session, "rewind --abort" if abort else "rewind --continue", run)
    if as_json:
        print_json({"session": session.id, "action": entry.why, "dry_run": False, **json_outcome(session, entry)})
    else:
        report(session, "abort" if abort else entry.why, entry)
    exit_for_problems(session, entry)


def _absolute(path: str) -> str:
    """A path from the root of the file system; a link that is named is meant itself."""
    full = Path(named_here(path))
    return path_text(os.fsencode(full.parent.resolve() / full.name))
