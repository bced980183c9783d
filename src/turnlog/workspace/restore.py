"""Putting files back: each replaced at once, through folder handles, never through a link, never outside the root."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.digest import sha256
from turnlog.workspace.extra import apply_metadata, own_link
from turnlog.workspace.ignore import TEMPORARY
from turnlog.workspace.plan import Step
from turnlog.workspace.read import FILE_FLAGS, FOLDER_FLAGS, hash_file
from turnlog.workspace.scan import MAX_DEPTH
from turnlog.workspace.tree import FILE, FOLDER, LINK, TreeNode

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
"""What stops the whole: no other file would fare better."""
_GONE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
_CHANGED = "changed while we worked"
_OURS = 0o700
"""What we need in a folder until all that belongs in it is there."""
Get = Callable[[str], Iterator[bytes]]
"""The content with that digest, verified, piece by piece."""
Look = tuple[int, int, int, int, int, int] | None


class Outcome(Struct, frozen=True):
    """What became of one step."""

    step: Step
    is_done: bool
    problem: str = ""
    note: str = ""
    """What the system did not allow of a step that was done: an owner, an attribute."""


class Restorer:
    """Carries out steps below one root. `mark` tells what is half done of these from all else with such a name."""

    def __init__(self, root: str, get: Get, mark: str) -> None:
        self._root = os.open(root, FOLDER_FLAGS)
        top = os.fstat(self._root)
        self._owner = (top.st_uid, top.st_gid)
        self._note = ""
        self._get = get
        self._mark = mark.encode("utf-8", "surrogatepass")
        self._dirty: set[bytes] = set()
        self._left: set[tuple[bytes, bytes]] = set()
        """What is half done and could not be removed."""
        self._missing: set[bytes] = set()
        """Folders that could not be put back: what belongs in them does not make them."""

    def close(self) -> None:
        """Let go of the root, with every folder that changed on the disk. Raises if the disk does not confirm it."""
        failed: OSError | None = None
        for parent, name in self._left:
            with suppress(OSError), self._folder(parent) as fd:
                os.unlink(name, dir_fd=fd)
        for folder in sorted(self._dirty):
            try:
                with self._folder(folder) as fd:
                    os.fsync(fd)
            except OSError as error:
                if error.errno not in _GONE:
                    failed = error
        os.close(self._root)
        if failed is not None:
            raise failed

    def sweep(self, steps: list[Step]) -> None:
        """Remove what an interrupted attempt at these steps left half done."""
        for step in steps:
            parent, _, _ = step.raw.rpartition(b"/")
            try:
                with self._folder(parent) as fd:
                    os.unlink(self._temporary(step), dir_fd=fd)
            except OSError:
                continue  # most often because there is none

    def run(self, steps: list[Step]) -> Iterator[Outcome]:
        """Deletes first, the deepest first; then folders, then files, then the modes of folders.

        A step that fails does not stop the others, unless the disk is full.
        """
        opened = self._open_up(steps)
        for step in sorted((s for s in steps if s.then is None), key=lambda s: s.raw, reverse=True):
            yield self._try(step, self._remove)
        folders: list[Step] = []
        for step in sorted((s for s in steps if s.then and s.then.kind == FOLDER), key=lambda s: s.raw):
            outcome = self._try(step, self._put_folder)
            if outcome.is_done:
                folders.append(step)
            else:
                self._missing.add(step.raw)
                yield outcome
        for step in sorted((s for s in steps if s.then and s.then.kind != FOLDER), key=lambda s: s.raw):
            yield self._try(step, self._put)
        for step in reversed(folders):
            yield self._try(step, self._close_folder)
        for step in reversed(opened):
            self._try(step, self._close_again)

    def _open_up(self, steps: list[Step]) -> list[Step]:
        """Folders that are to go may be locked: then what is in them can only go when they are not."""
        opened: list[Step] = []
        for step in sorted(steps, key=lambda s: s.raw):
            goes = step.now is not None and step.now.kind == FOLDER and (step.then is None or step.then.kind != FOLDER)
            if goes and step.now is not None and step.now.mode & _OURS != _OURS:
                parent, _, name = step.raw.rpartition(b"/")
                with suppress(OSError), self._folder(parent) as fd:
                    if not _impossible(step) and is_as(fd, name, step.now):
                        _set_mode(fd, name, step.now.mode | _OURS, FOLDER_FLAGS)
                        opened.append(step)
        return opened

    def _close_again(self, step: Step, _node: TreeNode) -> str:
        parent, _, name = step.raw.rpartition(b"/")
        with self._folder(parent) as fd:
            if step.now is not None and _is_as_opened(fd, name, step.now):
                _set_mode(fd, name, step.now.mode, FOLDER_FLAGS)
        return ""

    def _try(self, step: Step, act: Callable[[Step, TreeNode], str]) -> Outcome:
        self._note = ""
        try:
            problem = _impossible(step) or act(step, step.then or TreeNode(""))
        except TurnlogError as error:
            problem = str(error)
        except OSError as error:
            if error.errno in FULL:
                raise
            problem = error.strerror or str(error)
        return Outcome(step, not problem, problem, "" if problem else self._note)

    @contextmanager
    def _folder(self, path: bytes, *, make: bool = False) -> Generator[int]:
        """A handle on a folder, opened name by name from the root; a link on the way is an error."""
        fd = os.dup(self._root)
        above = b""
        try:
            for name in path.split(b"/") if path else []:
                inner = above + b"/" + name if above else name
                if make and inner not in self._missing:
                    try:
                        os.mkdir(name, 0o777, dir_fd=fd)
                        self._dirty.add(above)
                    except FileExistsError:
                        pass
                try:
                    below = os.open(name, FOLDER_FLAGS, dir_fd=fd)
                except FileNotFoundError:
                    if inner in self._missing:
                        raise OSError(errno.EIO, "its folder could not be put back") from None
                    raise
                os.close(fd)
                fd, above = below, inner
            yield fd
        finally:
            os.close(fd)

    def _discard(self, fd: int, parent: bytes, name: bytes) -> None:
        try:
            os.unlink(name, dir_fd=fd)
        except OSError:
            self._left.add((parent, name))  # once more at the end; no checkpoint covers it in any case

    def _temporary(self, step: Step) -> bytes:
        return TEMPORARY + sha256(self._mark + b"\0" + step.raw).hexdigest()[:24].encode()

    # ── deletes ───────────────────────────────────────────────────────────────────────────────────

    def _remove(self, step: Step, _node: TreeNode) -> str:
        parent, _, name = step.raw.rpartition(b"/")
        try:
            with self._folder(parent) as fd:
                seen = _look(fd, name)
                if seen is None:
                    return ""
                if not is_as(fd, name, step.now) and not _is_as_opened(fd, name, step.now):
                    return _CHANGED
                self._dirty.add(parent)
                if step.now is not None and step.now.kind == FOLDER:
                    return _remove_folder(fd, name)
                return self._unlink(fd, name, seen)
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def _unlink(self, fd: int, name: bytes, seen: Look) -> str:
        if _look(fd, name) != seen:
            return _CHANGED
        os.unlink(name, dir_fd=fd)
        return ""

    # ── folders ───────────────────────────────────────────────────────────────────────────────────

    def _put_folder(self, step: Step, node: TreeNode) -> str:
        """A folder that we can work in; it gets its mode when all that belongs in it is there."""
        parent, _, name = step.raw.rpartition(b"/")
        now = step.now
        was_folder = now is not None and now.kind == FOLDER
        with self._folder(parent, make=not was_folder) as fd:
            seen = _look(fd, name)
            if seen is not None and stat.S_ISDIR(seen[0]):
                mode = stat.S_IMODE(seen[0])
                if mode == node.mode or (not was_folder and mode == node.mode | _OURS):
                    return ""
                if not is_as(fd, name, now):
                    return _CHANGED
                if mode & _OURS != _OURS:
                    self._dirty.add(parent)
                    _set_mode(fd, name, node.mode | _OURS, FOLDER_FLAGS)
                return ""
            if seen is None and was_folder:
                return _CHANGED
            if seen is not None:
                if now is None or not is_as(fd, name, now):
                    return _CHANGED
                if _look(fd, name) != seen:
                    return _CHANGED
            self._dirty.add(parent)
            aside = None if seen is None else self._temporary(step)
            self._make_folder(fd, name, node.mode | _OURS, aside)
            if aside is not None:
                self._discard(fd, parent, aside)
        return ""

    def _make_folder(self, fd: int, name: bytes, mode: int, aside: bytes | None) -> None:
        """A new folder; a file that has its name goes, but comes back if there can be no folder."""
        if aside is not None:
            os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
        try:
            os.mkdir(name, mode, dir_fd=fd)
            _set_mode(fd, name, mode, FOLDER_FLAGS)
        except OSError:
            with suppress(OSError):
                os.rmdir(name, dir_fd=fd)
            if aside is not None:
                os.rename(aside, name, src_dir_fd=fd, dst_dir_fd=fd)
            raise

    def _close_folder(self, step: Step, node: TreeNode) -> str:
        parent, _, name = step.raw.rpartition(b"/")
        with self._folder(parent) as fd:
            if _look(fd, name) is not None:
                self._dirty.add(parent)
                self._dress(fd, name, node, FOLDER_FLAGS)
        return ""

    def _dress(self, fd: int, name: bytes, node: TreeNode, flags: int) -> None:
        """Owner, mode and attributes as the node says."""
        handle = os.open(name, flags, dir_fd=fd)
        try:
            self._note = apply_metadata(handle, node.mode, node.extra, self._owner)
            os.fsync(handle)
        finally:
            os.close(handle)

    # ── files and links ───────────────────────────────────────────────────────────────────────────

    def _put(self, step: Step, node: TreeNode) -> str:
        parent, _, name = step.raw.rpartition(b"/")
        now = step.now
        was_folder = now is not None and now.kind == FOLDER
        with self._folder(parent, make=now is None) as fd:
            seen = _look(fd, name)
            if is_as(fd, name, node) and (now is None or now.extra == node.extra):
                return ""
            if not is_as(fd, name, now) and not _is_as_opened(fd, name, now) and not (was_folder and seen is None):
                return _CHANGED
            self._dirty.add(parent)
            # The mode of a file with several names is everybody's: it gets a copy of its own.
            is_same = now is not None and now.kind == node.kind == FILE and now.digest == node.digest
            if is_same and seen is not None and seen[5] == 1:
                self._dress(fd, name, node, FILE_FLAGS)
                return ""
            temporary = self._temporary(step)
            try:
                if node.kind == LINK:
                    os.symlink(node.target, temporary, dir_fd=fd)
                    self._note = own_link(fd, temporary, node.extra, self._owner)
                else:
                    self._write(fd, temporary, node)
                problem = self._take_place(fd, temporary, name, seen, was_folder=was_folder)
            except BaseException:
                self._discard(fd, parent, temporary)
                raise
            if problem:
                self._discard(fd, parent, temporary)
            return problem

    def _take_place(self, fd: int, temporary: bytes, name: bytes, seen: Look, *, was_folder: bool) -> str:
        if _look(fd, name) != seen:  # somebody saved it while we wrote ours
            return _CHANGED
        if was_folder and seen is not None and (problem := _remove_folder(fd, name)):
            return problem
        try:
            os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
        except OSError:
            if was_folder and seen is not None:
                self._make_folder(fd, name, stat.S_IMODE(seen[0]), None)
            raise
        return ""

    def _write(self, fd: int, name: bytes, node: TreeNode) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(name, flags, 0o600, dir_fd=fd)
        try:
            for piece in self._get(node.digest):
                view = memoryview(piece)
                while view:
                    view = view[os.write(handle, view) :]
            self._note = apply_metadata(handle, node.mode, node.extra, self._owner)
            os.fsync(handle)
        finally:
            os.close(handle)


def _impossible(step: Step) -> str:
    """Why nobody could mean this step: logs and trees are not to be trusted."""
    names = step.raw.split(b"/")
    if any(name in (b"", b".", b"..") or b"\0" in name for name in names):
        return "not a path in a folder"
    if len(names) > MAX_DEPTH + 1:
        return f"nested more than {MAX_DEPTH} folders deep"
    node = step.then
    if node is None:
        return ""
    if node.kind not in (FILE, LINK, FOLDER) or not 0 <= node.mode <= 0o7777 or b"\0" in node.target:
        return "nothing that can be put back"
    return ""


def _remove_folder(fd: int, name: bytes) -> str:
    try:
        os.rmdir(name, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return "the folder is not empty: somebody's files are in it"
        raise
    return ""


def _set_mode(fd: int, name: bytes, mode: int, flags: int) -> None:
    handle = os.open(name, flags, dir_fd=fd)
    try:
        os.fchmod(handle, mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_as_opened(fd: int, name: bytes, node: TreeNode | None) -> bool:
    """Whether it is a folder as the node says, but for what we need in it."""
    if node is None or node.kind != FOLDER:
        return False
    return is_as(fd, name, TreeNode(FOLDER, node.mode | _OURS))


def _look(fd: int, name: bytes) -> Look:
    """What tells whether something is still the same: mode, inode, size, times, and how many names it has."""
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    is_folder = stat.S_ISDIR(status.st_mode)
    size, changed = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
    return status.st_mode, status.st_ino, size, changed, 0 if is_folder else status.st_ctime_ns, status.st_nlink


def is_as(fd: int, name: bytes, node: TreeNode | None) -> bool:
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
        and hash_file(fd, name, node.size) == node.digest
    )
