"""The session that takes the checkpoints of a project, and what these do not cover."""

from __future__ import annotations

import os
from pathlib import Path

from turnlog.cli.draw.text import path_of
from turnlog.cli.frame.notes import note, tell
from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry, Checkpoint
from turnlog.machine.folder import workspace_path
from turnlog.machine.workspacetop import refuses_checkpoints
from turnlog.reader.naming.here import ProjectFolder, in_repository, newest_at, newest_here, project, project_folder
from turnlog.session import Home, Session
from turnlog.thread.report import SAFETY_NET_AGENT
from turnlog.view.visible import one_line
from turnlog.workspace.folderscan import REPOSITORY
from turnlog.workspace.tree import path_bytes

_LISTED = 10


def own_session(home: Home, *, is_here: bool, agent: str | None = None) -> str | None:
    """Return the newest session that covers this project as a whole; or this folder and no more."""
    if is_here:
        return newest_at(home, workspace_path("."), agent=agent)
    return newest_at(home, project(), agent=agent) if in_repository() else newest_here(home, agent=agent)


def new_session(home: Home, *, is_here: bool) -> Session:
    """Open a session for this project, if it may have checkpoints."""
    project = ProjectFolder(workspace_path(".")) if is_here else project_folder()
    folder = os.fsdecode(path_bytes(project.path))
    _refuse_folder(folder)
    if project.why_not_all:
        note(project.why_not_all)
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
    """Tell what a checkpoint does not cover; of repositories in the folder, only those that are new to it."""
    last = next((e for e in session.entries(kind="checkpoint", reverse=True) if _is_earlier(e, checkpoint)), None)
    before = [row for row in last.skipped if row["reason"] == REPOSITORY] if isinstance(last, Checkpoint) else []
    skipped = [row for row in checkpoint.skipped if row not in before]
    for row in skipped[:_LISTED]:
        tell(f"not covered: {path_of(path_bytes(row['path']))}: {one_line(row['reason'])}", exact=True)
    if len(skipped) > _LISTED:
        tell(f"not covered: {len(skipped) - _LISTED:,} more; `turnlog checkpoints --json` has them")


def _is_earlier(entry: AnyEntry, checkpoint: Checkpoint) -> bool:
    return entry.seq < checkpoint.seq and (checkpoint.turn is None or entry.turn != checkpoint.turn)
