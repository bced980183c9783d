"""The folder of a root itself: whether it exists, and creating it again if it is missing."""

from __future__ import annotations

import os
import stat

from turnlog.workspace.pathstate import UNLOCKED
from turnlog.workspace.plan import Step
from turnlog.workspace.read import FOLDER_FLAGS
from turnlog.workspace.tree import FOLDER


def permissions_of(path: str) -> int | None:
    """The permission bits of a folder; None if it does not exist. Anything else raises `OSError`."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.S_IMODE(mode) if stat.S_ISDIR(mode) else None


def why_not_made(path: str) -> str:
    """Why a missing folder cannot be created; empty if it can."""
    if os.path.lexists(path):
        return "something else has its name"
    above = os.path.dirname(path)
    return "" if os.path.isdir(above) else f"the folder above it is gone, too: {above}"


def make_root(path: str, step: Step) -> str:
    """Create a missing root, for a step without a path. Returns the problem, if there is one.

    Folders above it are not created: a missing one may be on a disk that is not attached. A root is never deleted,
    because a process may be working in it.
    """
    node = step.then
    if node is None:
        return ""
    if step.now is not None or node.kind != FOLDER or not 0 <= node.mode <= 0o7777:
        return "not a path in a folder"
    above, name = os.path.split(path)
    try:
        fd = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return error.strerror or str(error)
    try:
        os.mkdir(name, UNLOCKED, dir_fd=fd)
        if os.geteuid() == 0:  # its owner is unknown: most likely that of the parent folder
            above_it = os.fstat(fd)
            os.chown(name, above_it.st_uid, above_it.st_gid, dir_fd=fd, follow_symlinks=False)
        os.chmod(name, node.mode | UNLOCKED, dir_fd=fd)
        os.fsync(fd)
    except FileExistsError:
        is_ours = permissions_of(path) == node.mode | UNLOCKED  # an interrupted attempt created it
        return "" if is_ours else "somebody made it meanwhile"
    except OSError as error:
        return error.strerror or str(error)
    finally:
        os.close(fd)
    return ""


def close_root(path: str, step: Step) -> None:
    """Set the mode of a created root, after everything in it was restored."""
    node = step.then
    if node is None or node.mode & UNLOCKED == UNLOCKED:
        return
    fd = os.open(path, FOLDER_FLAGS)
    try:
        os.fchmod(fd, node.mode)
        os.fsync(fd)
    finally:
        os.close(fd)
