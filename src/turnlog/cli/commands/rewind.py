"""`turnlog rewind`."""

from __future__ import annotations

import os
from pathlib import Path

from turnlog.cli.draw.text import count
from turnlog.cli.frame import shape
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import SESSION_OPTION, Argument, Option, declare
from turnlog.cli.frame.exitcode import Left, Misused
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import patience
from turnlog.cli.pick.session import refuse_interrupted, session_to_change
from turnlog.cli.rewinding import DRY_RUN_OPTION, FORCE_OPTION, REWOUND, YES_OPTION, How, report, show_and_rewind
from turnlog.errors import Conflict, NotFound
from turnlog.log.entry import Head
from turnlog.machine.folder import named_here
from turnlog.reader.place import checkpoint_at, place_of
from turnlog.reader.takeback import NO_CHECKPOINT
from turnlog.session import Session
from turnlog.workspace.plan import Plan
from turnlog.workspace.tree import path_bytes

CHANGES = shape.WORKSPACE
FIELDS = {
    **REWOUND,
    "target": shape.number("the entry that it goes back to"),
    "checkpoint": shape.number("the checkpoint of the files", null=True),
    "files": shape.flag("whether files are rewound"),
    "conversation": shape.flag("whether the conversation is rewound"),
}


@declare(
    Argument("target", "[TARGET]"),
    DRY_RUN_OPTION,
    Option("--files", "Only the files; the conversation stays.", name="only_files"),
    Option("--conversation", "Only the conversation; no file is touched.", name="only_conversation"),
    Option("--only PATH", "Only this file or folder (may be repeated); implies --files.", many=True),
    FORCE_OPTION,
    YES_OPTION,
    Option("--continue", "Finish a rewind that was interrupted.", name="finish"),
    Option("--abort", "Take back what an interrupted rewind has done so far."),
    SESSION_OPTION,
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
        refuse_agent("`rewind --force`")
    with this_home() as home:
        if finish or abort:
            _finish(session_to_change(home, session, files=True), abort=abort, as_json=as_json)
            return
        rewound = session_to_change(home, session, files=True)
        refuse_interrupted(rewound)
        goal = place_of(rewound, target)
        files, conversation = not only_conversation, not only_files and not only
        checkpoint = checkpoint_at(rewound, goal) if files else None
        if files and checkpoint is None and not conversation:
            raise NotFound(f"there is no checkpoint at or before {goal.words}", hint="see `turnlog checkpoints`")
        chosen: list[str] | None = [_inside(rewound, path) for path in only]
        chosen = None if not chosen or "." in chosen else chosen
        plan = Plan([], NO_CHECKPOINT if files else "")
        if checkpoint is not None:
            with patience():
                plan = rewound.plan_rewind(goal.seq, only=chosen, force=force)

        head, digest = rewound.head, plan.digest if checkpoint is not None else None

        def act() -> Head:
            return rewound.rewind(
                goal.seq, files=files, conversation=conversation, only=chosen, force=force, plan=digest, after=head
            )

        words, leaving = [f"target: {goal.words}"], 0
        if conversation:
            leaving = sum(message.seq > goal.seq for message in rewound.messages())
            words.append(f"conversation: {count(leaving, 'message')} left behind as a branch" if leaving else "")
        more = {"target": goal.seq, "checkpoint": checkpoint.seq if checkpoint else None, "dry_run": dry_run}
        show_and_rewind(
            home,
            rewound,
            "rewind",
            plan,
            act,
            How(dry_run, yes, as_json),
            words=[word for word in words if word],
            more={**more, "files": files, "conversation": conversation},
            is_idle=not leaving,
        )


def _check(target: str | None, files: bool, conversation: bool, finish: bool, abort: bool) -> None:
    if files and conversation:
        raise Misused("--conversation does not go with --files or --only")
    if finish and abort:
        raise Misused("either --continue or --abort")
    if (finish or abort) and (target is not None or files or conversation):
        raise Misused(f"{'--continue' if finish else '--abort'} takes no target and no choice of files")


def _finish(session: Session, *, abort: bool, as_json: bool) -> None:
    with patience():
        entry = session.finish_rewind(abort=abort)
    if entry is None:
        raise NotFound(f"no rewind of session {session.handle} was interrupted")
    problems = session.problems()
    if as_json:
        print_json({"session": session.id, "action": entry.why, "entry": entry.seq, "result": entry.files})
    else:
        report(session, "abort" if abort else entry.why, entry)
    if problems:
        raise Left(Conflict.exit_code)


def _inside(session: Session, path: str) -> str:
    """A path as plans name it: from the workspace, or, for a tracked file elsewhere, by its name."""
    base = Path(os.fsdecode(path_bytes(session.workspace or "")))
    full = Path(named_here(path))
    full = full.parent.resolve() / full.name  # a link that is named is meant itself
    return str(full.relative_to(base)) if full.is_relative_to(base) else full.name
