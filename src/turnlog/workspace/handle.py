"""Handles on the folders of a scan, opened one from the other; only a few are open at a time, at any depth.

Links are never followed. A handle that had to be closed is opened again from the root, name by name, and must be the
same folder.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from turnlog.workspace.read import FOLDER_FLAGS

_MOST = 8
"""The most folders that are open besides the root."""


class FolderHandle:
    """One folder of a scan."""

    __slots__ = ("above", "fd", "identity", "name")

    def __init__(self, above: FolderHandle | None, name: str, fd: int) -> None:
        self.above = above
        self.name = name
        self.fd = fd
        """-1 while it is not open."""
        self.identity: tuple[int, int] = (0, 0)
        """Device and inode, recorded when it is closed temporarily."""


class Handles:
    """The handles of a scan."""

    def __init__(self, root: str) -> None:
        self.root = FolderHandle(None, "", os.open(root, FOLDER_FLAGS))
        self._open: list[FolderHandle] = []

    def close(self) -> None:
        """Close all handles."""
        for handle in [*self._open, self.root]:
            os.close(handle.fd)
        self._open.clear()

    def enter(self, above: FolderHandle, name: str) -> FolderHandle:
        """Open a subfolder."""
        handle = FolderHandle(above, name, os.open(name, FOLDER_FLAGS, dir_fd=self.fd(above)))
        self._keep(handle)
        return handle

    @contextmanager
    def entered(self, above: FolderHandle, name: str) -> Generator[FolderHandle]:
        """An open subfolder, as a context manager."""
        handle = self.enter(above, name)
        try:
            yield handle
        finally:
            self.leave(handle)

    def leave(self, handle: FolderHandle) -> None:
        """Close a folder after its scan."""
        if handle.fd >= 0:
            self._open.remove(handle)
            os.close(handle.fd)
            handle.fd = -1

    def fd(self, handle: FolderHandle) -> int:
        """The descriptor of a folder; valid until another one is entered."""
        if handle.fd < 0:
            self._reopen(handle)
        return handle.fd

    def _keep(self, handle: FolderHandle) -> None:
        self._open.append(handle)
        if len(self._open) > _MOST:
            first = self._open[0]
            status = os.fstat(first.fd)
            first.identity = status.st_dev, status.st_ino
            self._open.pop(0)
            os.close(first.fd)
            first.fd = -1

    def _reopen(self, handle: FolderHandle) -> None:
        names: list[str] = []
        folder = handle
        while folder.above is not None:
            names.append(folder.name)
            folder = folder.above
        fd = os.dup(self.root.fd)
        try:
            for name in reversed(names):
                above, fd = fd, os.open(name, FOLDER_FLAGS, dir_fd=fd)
                os.close(above)
            status = os.fstat(fd)
            if (status.st_dev, status.st_ino) != handle.identity:
                raise OSError(errno.EBUSY, "it was moved while it was looked at")
        except BaseException:
            os.close(fd)
            raise
        handle.fd = fd
        self._keep(handle)
