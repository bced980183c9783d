"""Folders and files as people name them here: the current folder, links, `~`, and what a log calls them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from turnlog.errors import Invalid, NotFound
from turnlog.machine.environment import environment, user_folder

if TYPE_CHECKING:
    from turnlog.formats import Format, Places


def current_folder() -> str:
    """The current folder, also where it is gone: then what it was called when it was there."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        pass
    try:
        return os.readlink("/proc/self/cwd").removesuffix(" (deleted)")
    except OSError:
        shell = environment().get("PWD", "")  # what a shell says of itself: the only one who still knows
    if not os.path.isabs(shell):
        raise NotFound("the current folder is gone", hint="`cd` to one that is there")
    return shell


def is_here() -> bool:
    """Whether the current folder is there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def expand(path: str) -> str:
    """A path with `~` at its beginning resolved."""
    return os.path.expanduser(path)


def absolute(path: str) -> str:
    """A path from the root, `~` resolved; links stay. Nothing lies in a current folder that is gone."""
    path = expand(path)
    if not os.path.isabs(path) and not is_here():
        raise NotFound(f"there is no {path}: the current folder is gone", hint="`cd` to one that is there")
    return os.path.abspath(path)


def named_here(path: str) -> str:
    """What a path is called from the root, also where the current folder is gone; links stay."""
    return os.path.normpath(os.path.join(current_folder(), expand(path)))


def workspace_path(path: str | os.PathLike[str]) -> str:
    """A folder as sessions name it: absolute, links resolved; `bytes:` and %-escapes where it is not Unicode."""
    try:
        text = os.fsdecode(path)
        real = os.path.realpath(text if os.path.isabs(text) else os.path.join(current_folder(), text))
    except (TypeError, ValueError) as error:
        raise Invalid(f"the folder {path!r:.80}: {error}") from None
    try:
        real.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote_from_bytes

        return "bytes:" + quote_from_bytes(os.fsencode(real))
    return real


def place_in(workspace: str | None, path: str | os.PathLike[str], *, is_relative: bool) -> str:
    """A file as the log names it: absolute, or relative to the workspace if it is in there."""
    from turnlog.workspace.tree import path_bytes, path_text

    base = os.fsdecode(path_bytes(workspace or current_folder()))
    full = os.path.normpath(os.path.join(base, os.fspath(path)))
    # The folder as it is, whatever links lead to it now: going back never goes through one.
    full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    if is_relative and full.startswith(base + os.sep):
        full = os.path.relpath(full, base)
    return path_text(os.fsencode(full))


def refuses_checkpoints(root: str) -> str:
    """Why that folder is never scanned as a workspace; empty if it may be."""
    home = os.path.realpath(user_folder())
    if root == "/" or os.path.dirname(root) == root:
        return "it is the whole file system"
    if root == home:
        return "it is the home folder"
    if home.startswith(root.rstrip("/") + "/"):
        return "the home folder is in it"
    return ""


def top_of(folder: str) -> tuple[str, str]:
    """The top of the repository that a folder is in, or the folder itself; and what of the repository, if refused."""
    folder = top = os.path.realpath(folder)
    while not has_git(top):
        above = os.path.dirname(top)
        if above == top:
            return folder, ""
        top = above
    refused = refuses_checkpoints(top) if top != folder else ""
    return (folder, f"{top}: {refused}") if refused else (top, "")


def has_git(folder: str) -> bool:
    """Whether that is the top of a repository or worktree."""
    return os.path.lexists(os.path.join(folder, ".git"))


def places_of(workspace: str | None) -> Places:
    """What formats may know of this machine."""
    from turnlog.formats import Places

    return Places(home=user_folder(), workspace=named_here(workspace or "."), environ=dict(environment()))


def lies_in_home(form: Format, there: str) -> bool:
    """Whether that is a folder where the agent keeps this person's sessions, or in one; not in a workspace."""
    from msgspec.structs import replace

    path = os.path.realpath(absolute(there)).rstrip("/") + "/"
    homes = form.homes(replace(places_of(None), workspace=None))
    return any(path.startswith(os.path.realpath(home).rstrip("/") + "/") for home in homes)
