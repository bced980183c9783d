"""Putting files back: each replaced at once, through folder handles, never through a link, never outside the root."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound
from turnlog.log.ids import word
from turnlog.workspace.plan import Step
from turnlog.workspace.scan import hash_file
from turnlog.workspace.tree import FILE, FOLDER, LINK, Node

TEMPORARY = b".turnlog-"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Get = Callable[[str], Iterator[bytes]]
"""The content with that digest, verified, piece by piece."""


class Outcome(Struct, frozen=True):
    """What became of one step."""

    step: Step
    is_done: bool
    problem: str = ""


class Restorer:
    """Carries out steps below one root."""

    def __init__(self, root: str, get: Get) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._get = get
        self._dirty: set[bytes] = set()

    def close(self) -> None:
        """Let go of the root, with every folder that changed on the disk."""
        for folder in sorted(self._dirty):
            try:
                with self._folder(folder) as fd:
                    os.fsync(fd)
            except OSError:
                continue  # it is gone by now
        os.close(self._root)

    def run(self, steps: list[Step]) -> Iterator[Outcome]:
        """Deletes first, the deepest first; then folders; then files. One that fails does not stop the others."""
        gone = [s for s in steps if s.then is None or (s.now is not None and s.now.kind != s.then.kind)]
        for step in sorted(gone, key=lambda s: s.path, reverse=True):
            if step.then is None:
                yield self._try(step, self._remove)
            else:
                outcome = self._try(step, self._remove)
                if not outcome.is_done:
                    yield outcome
        rest = [s for s in steps if s.then is not None]
        for step in sorted(rest, key=lambda s: (s.then is not None and s.then.kind != FOLDER, s.path)):
            yield self._try(step, self._put)

    def _try(self, step: Step, act: Callable[[Step], str]) -> Outcome:
        try:
            problem = act(step)
        except (Corrupt, NotFound) as error:
            problem = str(error)
        except OSError as error:
            problem = error.strerror or str(error)
        return Outcome(step, not problem, problem)

    @contextmanager
    def _folder(self, path: bytes, *, make: bool = False) -> Generator[int]:
        """A handle on a folder, opened name by name from the root; a link on the way is an error."""
        fd = os.dup(self._root)
        try:
            for name in path.split(b"/") if path else []:
                if name in (b"", b".", b"..") or b"\0" in name:
                    raise OSError(22, "not a name")
                if make:
                    try:
                        os.mkdir(name, 0o777, dir_fd=fd)
                    except FileExistsError:
                        pass
                below = os.open(name, _FOLDER_FLAGS, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    def _remove(self, step: Step) -> str:
        parent, _, name = step.path.rpartition(b"/")
        try:
            with self._folder(parent) as fd:
                if not is_as(fd, name, step.now):
                    return "" if not _exists(fd, name) else "changed while we worked"
                self._dirty.add(parent)
                if step.now is not None and step.now.kind == FOLDER:
                    try:
                        os.rmdir(name, dir_fd=fd)
                    except OSError:
                        return "the folder is not empty: somebody's files are in it"
                else:
                    os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            return ""
        return ""

    def _put(self, step: Step) -> str:
        assert step.then is not None
        parent, _, name = step.path.rpartition(b"/")
        with self._folder(parent, make=True) as fd:
            if is_as(fd, name, step.then):
                return ""
            replaced = step.now is not None and step.now.kind != step.then.kind
            if not is_as(fd, name, None if replaced else step.now):
                return "changed while we worked"
            self._dirty.add(parent)
            if step.then.kind == FOLDER:
                return self._put_folder(fd, name, step.then)
            if step.then.kind == LINK:
                self._put_link(fd, name, step.then)
            elif step.now is not None and step.now.kind == FILE and step.now.digest == step.then.digest:
                self._set_mode(fd, name, step.then.mode)
            else:
                self._put_file(fd, name, step.then)
        return ""

    def _put_folder(self, fd: int, name: bytes, node: Node) -> str:
        if not _exists(fd, name):
            os.mkdir(name, node.mode or 0o777, dir_fd=fd)
        self._set_mode(fd, name, node.mode)
        return ""

    def _set_mode(self, fd: int, name: bytes, mode: int) -> None:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        try:
            os.fchmod(handle, mode)
        finally:
            os.close(handle)

    def _put_link(self, fd: int, name: bytes, node: Node) -> None:
        temporary = TEMPORARY + word(12).encode()
        os.symlink(node.target, temporary, dir_fd=fd)
        os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)

    def _put_file(self, fd: int, name: bytes, node: Node) -> None:
        temporary = TEMPORARY + word(12).encode()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(temporary, flags, 0o600, dir_fd=fd)
        try:
            try:
                for piece in self._get(node.digest):
                    view = memoryview(piece)
                    while view:
                        view = view[os.write(handle, view) :]
                os.fchmod(handle, node.mode)
                os.fsync(handle)
            finally:
                os.close(handle)
            os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            os.unlink(temporary, dir_fd=fd)
            raise


def _exists(fd: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def is_as(fd: int, name: bytes, node: Node | None) -> bool:
    """Whether what is at that name now is what the node says; contents are compared, not times."""
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
        and hash_file(fd, name) == node.digest
    )
