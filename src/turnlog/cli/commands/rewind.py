"""`turnlog rewind`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from turnlog.cli.draw.text import count
from turnlog.cli.frame import shape
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import patience, print_json, refuse_interrupted, session_option, shared, this_home
from turnlog.cli.pick.session import session_to_change
from turnlog.cli.rewinding import REWOUND, How, dry_run_option, force_option, report, show_and_rewind, yes_option
from turnlog.errors import Conflict, NotFound
from turnlog.log.entry import Head
from turnlog.machine.folder import named_here
from turnlog.reader.place import checkpoint_at, place_of
from turnlog.session import Session
from turnlog.workspace.plan import Plan
from turnlog.workspace.tree import path_bytes

CHANGES = shape.WORKSPACE
FIELDS = {
    **REWOUND,
    "target": shape.number("the entry that it goes back to"),
    "checkpoint": shape.number("the checkpoint of the files", null=True),
    "files": shape.flag("whether files go back"),
    "conversation": shape.flag("whether the conversation does"),
}


@click.command()
@click.argument("target", required=False)
@dry_run_option
@click.option("--files", "only_files", is_flag=True, help="Only the files; the conversation stays.")
@click.option("--conversation", "only_conversation", is_flag=True, help="Only the conversation; no file is touched.")
@click.option(
    "--only", multiple=True, metavar="PATH", help="Only this file or folder (may be repeated); implies --files."
)
@force_option
@yes_option
@click.option("--continue", "finish", is_flag=True, help="Finish a rewind that was interrupted.")
@click.option("--abort", is_flag=True, help="Take back what was done of a rewind that was interrupted.")
@session_option
@shared
@click.pass_context
def command(
    context: click.Context,
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
    label of a checkpoint ("label:12" for one that looks like something else). Left out, it is the point before the
    last turn; where there are no turns, the last checkpoint that somebody asked for.

    Only files that the session's own turns changed are touched, and only where they still are what those turns left.
    What somebody else changed is a conflict and stays, unless --force. So does what changed after a turn was cut short,
    unless --only names it: nobody can tell whose it is. A checkpoint that somebody asked for, with no turn since, takes
    everything since. What is ignored or was not covered stays in any case. First there is a preview and a question;
    before anything is touched, everything is kept in a checkpoint, so that `turnlog undo` takes it back.

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
            _finish(context, session_to_change(home, session, files=True), abort=abort, as_json=as_json)
            return
        found = session_to_change(home, session, files=True)
        refuse_interrupted(found)
        place = place_of(found, target)
        files, conversation = not only_conversation, not only_files and not only
        checkpoint = checkpoint_at(found, place) if files else None
        if files and checkpoint is None and not conversation:
            raise NotFound(f"there is no checkpoint at or before {place.words}", hint="see `turnlog checkpoints`")
        chosen: list[str] | None = [_inside(found, path) for path in only]
        chosen = None if not chosen or "." in chosen else chosen
        plan = Plan([], "" if not files else "there is no checkpoint that far back, so files stay as they are")
        if checkpoint is not None:
            with patience():
                plan = found.plan_rewind(place.seq, only=chosen, force=force)

        def act() -> Head:
            return found.rewind(place.seq, files=files, conversation=conversation, only=chosen, force=force)

        words, leaving = [f"target: {place.words}"], 0
        if conversation:
            leaving = sum(message.seq > place.seq for message in found.messages())
            words.append(f"conversation: {count(leaving, 'message')} left behind as a branch" if leaving else "")
        more = {"target": place.seq, "checkpoint": checkpoint.seq if checkpoint else None, "dry_run": dry_run}
        show_and_rewind(
            context,
            home,
            found,
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
        raise click.UsageError("--conversation does not go with --files or --only")
    if finish and abort:
        raise click.UsageError("either --continue or --abort")
    if (finish or abort) and (target is not None or files or conversation):
        raise click.UsageError(f"{'--continue' if finish else '--abort'} takes no target and no choice of files")


def _finish(context: click.Context, session: Session, *, abort: bool, as_json: bool) -> None:
    with patience():
        done = session.finish_rewind(abort=abort)
    if done is None:
        raise NotFound(f"no rewind of session {session.handle} was interrupted")
    problems = session.problems()
    if as_json:
        print_json({"session": session.id, "action": done.why, "entry": done.seq, "result": done.files})
    else:
        report(session, "abort" if abort else done.why, done)
    if problems:
        context.exit(Conflict.exit_code)


def _inside(session: Session, path: str) -> str:
    """A path as plans name it: from the workspace, or, for a tracked file elsewhere, by its name."""
    base = Path(os.fsdecode(path_bytes(session.workspace or "")))
    full = Path(named_here(path))
    full = full.parent.resolve() / full.name  # a link that is named is meant itself
    return str(full.relative_to(base)) if full.is_relative_to(base) else full.name
