"""The paths that a tool edited and the worktrees that an agent entered, as a session's log names them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from turnlog.log.path import path_bytes
from turnlog.machine.folder import place_in, workspace_path
from turnlog.machine.workspacetop import refuses_checkpoints
from turnlog.workspace.git import repository_place, worktree_of

if TYPE_CHECKING:
    from turnlog.log.fold import State


def entered_worktree(state: State, cwd: str) -> str | None:
    """Return the worktree of the session's repository that contains `cwd`, unless checkpoints already cover it."""
    workspace, top = state.wide.get("workspace"), worktree_of(os.path.realpath(cwd or "/"))
    if not workspace or top is None or (name := workspace_path(top)) in (workspace, *state.folders):
        return None
    main = worktree_of(os.fsdecode(path_bytes(workspace)))
    if main is not None and repository_place(main) == repository_place(top) and not refuses_checkpoints(top):
        return name
    return None


def edited_paths(state: State, paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return these paths as the log names them, and those of them that are in no folder of the session."""
    workspace = str(state.wide.get("workspace") or "")
    folders = sorted(filter(None, (workspace, *state.folders)), key=len, reverse=True)
    edited: list[str] = []
    outside: list[str] = []
    for path in paths:
        full = place_in(workspace, path, is_relative=False)
        folder = next((one for one in folders if full.startswith(f"{one}/")), None)
        top = worktree_of(os.path.dirname(path)) if folder is not None else None
        if folder is None or (top is not None and workspace_path(top).startswith(f"{folder}/")):
            outside.append(full)
        edited.append(place_in(workspace, path, is_relative=folder == workspace))
    return edited, outside
