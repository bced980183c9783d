"""What is at a path now: whether it changed since, and whether it is as in a tree."""

from __future__ import annotations

import os
import stat

from turnlog.log.startup import NamedTuple
from turnlog.workspace.read import hash_file
from turnlog.workspace.tree import FILE, FOLDER, LINK, TreeNode

UNLOCKED = 0o700
"""The permissions that are needed in a folder while it is filled, and those of a folder with unknown ones."""


class PathState(NamedTuple):
    """The numbers that show whether a path changed; without size and times for a folder."""

    mode: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    links: int
    """How many names it has."""

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder."""
        return stat.S_ISDIR(self.mode)


def matches_unlocked(fd: int, name: bytes, node: TreeNode | None) -> bool:
    """Whether the path is the folder of the node, apart from the permissions in `UNLOCKED`."""
    return node is not None and node.kind == FOLDER and matches_node(fd, name, TreeNode(FOLDER, node.mode | UNLOCKED))


def path_state(fd: int, name: bytes) -> PathState | None:
    """The state of a name in an open folder, now; None if there is nothing."""
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        return PathState(status.st_mode, status.st_ino, 0, 0, 0, status.st_nlink)
    times = status.st_mtime_ns, status.st_ctime_ns
    return PathState(status.st_mode, status.st_ino, status.st_size, *times, status.st_nlink)


def matches_node(fd: int, name: bytes, node: TreeNode | None) -> bool:
    """Whether the path is as in the node; contents are compared, not times."""
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return node is None
    if node is None:
        return False
    if stat.S_ISLNK(status.st_mode):
        return node.kind == LINK and os.readlink(name, dir_fd=fd) == node.target
    if stat.S_IMODE(status.st_mode) != node.mode:
        return False
    if stat.S_ISDIR(status.st_mode):
        return node.kind == FOLDER
    return (
        stat.S_ISREG(status.st_mode)
        and node.kind == FILE
        and status.st_size == node.size
        and hash_file(fd, name, node.size) == node.digest
    )
