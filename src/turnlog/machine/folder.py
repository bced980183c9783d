"""Names of folders and files: relative to the current folder, with `~`, absolute, and as a log has them."""

from __future__ import annotations

import os

from turnlog.errors import Invalid, NotFound
from turnlog.machine.environment import environment


def current_folder() -> str:
    """The current folder; if it was removed, its former path."""
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
    """Whether the current folder still exists."""
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
