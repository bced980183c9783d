"""Where the folders of a session are now: its workspace, which may have moved, and the roots of its checkpoints."""

from __future__ import annotations

import os

from turnlog.log.fold import State
from turnlog.log.part import Root
from turnlog.workspace.tree import path_bytes

WORKSPACE = "workspace"
"""The name of the root that is the workspace."""


def workspace_of(state: State) -> str | None:
    """The current path of the workspace, as text of the log; None without a workspace."""
    workspace = state.wide.get("workspace")
    return str(workspace) if workspace else None


def workspace_folder(state: State) -> str | None:
    """The same as a path in the file system."""
    workspace = workspace_of(state)
    return None if workspace is None else os.fsdecode(path_bytes(workspace))


def workspace_prefix(state: State) -> bytes:
    """The real path of the workspace with a slash at the end; `/` without a workspace."""
    return folder_path(workspace_of(state) or "/")


def current_path(root: Root, workspace: str | None) -> str:
    """Where a root is now: the workspace at its current path, any other folder where it was."""
    return workspace if root.name == WORKSPACE and workspace is not None else root.path


def folder_path(folder: str) -> bytes:
    """The real path of a folder, with a slash at the end, so that a prefix of it is a folder above."""
    return os.path.join(os.path.realpath(path_bytes(folder)), b"")
