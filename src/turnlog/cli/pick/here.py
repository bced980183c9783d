"""Which folder is "here": the repository that the current folder is in, or else the folder itself."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.machine import current_folder, is_here, refuses_checkpoints, workspace_path


def project() -> str:
    """The folder that a session of here opens at, and whose sessions are those of here."""
    return workspace_path(_top()[0])


def project_told() -> tuple[str, str]:
    """The same, and why it is not the whole repository, where that is so."""
    top, refused = _top()
    return workspace_path(top), f"only {top} is covered, not the repository {refused}" if refused else ""


def in_repository() -> bool:
    """Whether here is a repository, and not only a folder."""
    return _has_git(_top()[0])


def levels() -> Iterator[list[str]]:
    """The folders whose sessions are of here, the first that have any count.

    In a repository all from this folder to its top count alike, and none beyond. Elsewhere it is one after the other.
    """
    folder, top = os.path.realpath(current_folder()), _top()[0]
    if _has_git(top):
        level = [workspace_path(folder)]
        while folder != top:
            folder = os.path.dirname(folder)
            level.append(workspace_path(folder))
        yield level
        return
    yield [workspace_path(folder)]
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        yield [workspace_path(folder)]
        if _has_git(folder) and not refuses_checkpoints(folder):
            return


def _top() -> tuple[str, str]:
    """The top of the repository, or the folder itself; and what of the repository, if it is not to be taken."""
    folder = top = os.path.realpath(current_folder())
    while is_here() and not _has_git(top):  # of a folder that is gone nobody knows which repository it was in
        above = os.path.dirname(top)
        if above == top:
            return folder, ""
        top = above
    refused = refuses_checkpoints(top) if top != folder else ""
    return (folder, f"{top}: {refused}") if refused else (top, "")


def _has_git(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, ".git"))
