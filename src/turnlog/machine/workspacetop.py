"""Which folder may be a workspace, and the top of the repository that a folder is in."""

from __future__ import annotations

import os

from turnlog.machine.environment import user_folder


def refuses_checkpoints(root: str) -> str:
    """Why a folder must not be scanned as a workspace; empty if it may be."""
    home = os.path.realpath(user_folder())
    if root == "/" or os.path.dirname(root) == root:
        return "it is the whole file system"
    if root == home:
        return "it is the home folder"
    if home.startswith(root.rstrip("/") + "/"):
        return "the home folder is in it"
    return ""


class RepositoryTop:
    """The folder to work in for a folder that may be in a repository."""

    # A plain class: every hook imports this module, and defining a named tuple takes longer than all of it.
    def __init__(self, folder: str, refusal: str = "") -> None:
        self.folder = folder
        """The top of the repository; the folder itself if there is no repository, or if it is refused."""
        self.refusal = refusal
        """Which repository is refused and why; empty if none is."""


def top_of(folder: str) -> RepositoryTop:
    """The top of the repository that a folder is in, unless it may be no workspace."""
    folder = top = os.path.realpath(folder)
    while not has_git(top):
        parent = os.path.dirname(top)
        if parent == top:
            return RepositoryTop(folder)
        top = parent
    refusal = refuses_checkpoints(top) if top != folder else ""
    return RepositoryTop(folder, f"{top}: {refusal}") if refusal else RepositoryTop(top)


def has_git(folder: str) -> bool:
    """Whether a folder is the top of a repository or worktree."""
    return os.path.lexists(os.path.join(folder, ".git"))
