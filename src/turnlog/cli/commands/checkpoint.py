"""`turnlog checkpoint`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from turnlog.cli.draw.change import Trees
from turnlog.cli.draw.text import count, one_line, path_of, size
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import HERE_OPTION, SESSION_OPTION, Argument, declare
from turnlog.cli.frame.exitcode import Misused
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import patience
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import refuse_interrupted, session_to_change
from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry, Checkpoint
from turnlog.machine.folder import refuses_checkpoints, workspace_path
from turnlog.reader.folder import in_repository, newest_at, newest_here, project, project_told
from turnlog.session import Home, Session
from turnlog.session.interior import interior
from turnlog.thread.report import SAFETY_NET_AGENT
from turnlog.workspace.folderscan import REPOSITORY
from turnlog.workspace.tree import path_bytes

_LISTED = 10
CHANGES = shape.LOG
FIELDS = {
    "session": SESSION,
    "is_new": shape.flag("whether the session is new"),
    "workspace": shape.text("the folder", null=True),
    "entry": shape.number("the number of the checkpoint"),
    "label": shape.text("its name", null=True),
    "files": shape.number("how many files are in it"),
    "size_bytes": shape.number("their size"),
    "skipped": shape.each("paths that are not covered, and why"),
}


@declare(Argument("label", "[LABEL]"), HERE_OPTION, SESSION_OPTION)
def command(label: str | None, here: bool, session: str | None, as_json: bool) -> None:
    """Save the current files of this project, to return to them later.

    It covers the repository around the current folder, otherwise the folder; with --here, only the folder. It is added
    to the newest session there, or to a new one. Very large files are left out and listed.

    \b
    turnlog checkpoint               one without a name
    turnlog checkpoint before-lunch  to come back to: `turnlog rewind NAME`
    """
    if here and session is not None:
        raise Misused("either --here or --session")
    with this_home() as home:
        target, is_new = open_session(home, session, is_here=here)
        refuse_interrupted(target)
        with patience():
            checkpoint = target.checkpoint(label)
        weight = Trees(interior(home).store).weight(checkpoint) or (0, 0)
        if as_json:
            data = {"session": target.id, "is_new": is_new, "workspace": target.workspace, "entry": checkpoint.seq}
            print_json(
                {**data, "label": label, "files": weight[0], "size_bytes": weight[1], "skipped": checkpoint.skipped}
            )
            return
        name = f" “{one_line(label)}”" if label else ""
        which = (
            f"{'new session' if is_new else 'session'} {one_line(target.handle)}, {one_line(target.workspace or '')}"
        )
        print(f"checkpoint{name}, entry {checkpoint.seq}: {count(weight[0], 'file')}, {size(weight[1])} ({which})")
        tell_skipped(target, checkpoint)


def open_session(home: Home, name: str | None, *, is_here: bool) -> tuple[Session, bool]:
    """The session that a checkpoint of this project goes into, and whether it is a new one."""
    if name is not None:
        return session_to_change(home, name), False
    newest = own_session(home, is_here=is_here)
    return (new_session(home, is_here=is_here), True) if newest is None else (home.resume(newest), False)


def own_session(home: Home, *, is_here: bool, agent: str | None = None) -> str | None:
    """The newest session that covers this project as a whole; or this folder and no more."""
    if is_here:
        return newest_at(home, workspace_path("."), agent=agent)
    return newest_at(home, project(), agent=agent) if in_repository() else newest_here(home, agent=agent)


def new_session(home: Home, *, is_here: bool) -> Session:
    """A session for this project, if it may have checkpoints."""
    workspace, why = (workspace_path("."), "") if is_here else project_told()
    folder = os.fsdecode(path_bytes(workspace))
    _refuse_folder(folder)
    if why:
        print(one_line(f"note: {why}"), file=sys.stderr)
    return home.create(workspace=folder, agent=SAFETY_NET_AGENT)


def _refuse_folder(folder: str) -> None:
    """Raise `Invalid` for a folder of which there are no checkpoints, before anything is written."""
    path = workspace_path(folder)
    if not Path(os.fsdecode(path_bytes(path))).is_dir():
        raise NotFound(f"the folder {path} is gone", hint="`cd` to one that is there")
    reason = refuses_checkpoints(path)
    if reason:
        raise Invalid(f"no checkpoints of {path}: {reason}", hint="go to the folder of a project")


def tell_skipped(session: Session, checkpoint: Checkpoint) -> None:
    """What a checkpoint does not cover, where a person sees it; of repositories in the folder, only those new to it."""
    last = next((e for e in session.entries(kind="checkpoint", reverse=True) if _is_earlier(e, checkpoint)), None)
    before = [row for row in last.skipped if row["reason"] == REPOSITORY] if isinstance(last, Checkpoint) else []
    skipped = [row for row in checkpoint.skipped if row not in before]
    for row in skipped[:_LISTED]:
        print(f"not covered: {path_of(path_bytes(row['path']))}: {one_line(row['reason'])}", file=sys.stderr)
    if len(skipped) > _LISTED:
        print(f"not covered: {len(skipped) - _LISTED:,} more; `turnlog checkpoints --json` has them", file=sys.stderr)


def _is_earlier(entry: AnyEntry, checkpoint: Checkpoint) -> bool:
    return entry.seq < checkpoint.seq and (checkpoint.turn is None or entry.turn != checkpoint.turn)
