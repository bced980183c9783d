"""Restoring files: each is replaced atomically, through folder handles, never through a link or outside the root."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.log.digest import sha256
from turnlog.log.startup import NamedTuple
from turnlog.workspace.ignore.rule import TEMPORARY
from turnlog.workspace.metadata import apply_metadata, own_link
from turnlog.workspace.pathstate import UNLOCKED, PathState, matches_node, matches_unlocked, path_state
from turnlog.workspace.plan import Step
from turnlog.workspace.read import FILE_FLAGS, FOLDER_FLAGS
from turnlog.workspace.scan import MAX_DEPTH
from turnlog.workspace.tree import FILE, FOLDER, LINK, TreeNode, is_folder

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
"""Errors that stop the whole restore, because every other file would fail, too."""
_GONE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP))
Get = Callable[[str], Iterator[bytes]]
"""A function that returns the verified content of a digest, in pieces."""


class Outcome(Struct, frozen=True):
    """The result of one step."""

    step: Step
    is_done: bool
    problem: str = ""
    note: str = ""
    """What the system did not allow in a completed step: an owner, an attribute."""


class _Result(NamedTuple):
    """What came of one change: a problem, or nothing but a note."""

    problem: str = ""
    note: str = ""


_DONE = _Result()
_CHANGED = _Result("changed while we worked")


class Restorer:
    """Carries out steps below one root. `mark` makes the names of its temporary files unique."""

    def __init__(self, root: str, get: Get, mark: str) -> None:
        self._root = os.open(root, FOLDER_FLAGS)
        top = os.fstat(self._root)
        self._owner = (top.st_uid, top.st_gid)
        self._get = get
        self._mark = mark.encode("utf-8", "surrogatepass")
        self._dirty: set[bytes] = set()
        self._left: set[tuple[bytes, bytes]] = set()
        """Temporary files that could not be removed."""
        self._missing: set[bytes] = set()
        """Folders that could not be restored: files in them do not create them."""

    def close(self) -> None:
        """Close the root after syncing every changed folder. Raises if a sync fails."""
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
        """Remove temporary files of an interrupted attempt at these steps."""
        for step in steps:
            parent, _, _ = step.raw.rpartition(b"/")
            try:
                with self._folder(parent) as fd:
                    os.unlink(self._temporary(step), dir_fd=fd)
            except OSError:
                continue  # usually because there is none

    def run(self, steps: list[Step]) -> Iterator[Outcome]:
        """Carry out the steps: deletes, deepest first; then folders, then files, then the modes of folders.

        A step that fails does not stop the others, unless the disk is full.
        """
        unlocked = self._unlock(steps)
        for step in sorted((step for step in steps if step.then is None), key=_raw, reverse=True):
            yield self._try(step, partial(self._remove, step))
        nodes = [(step, step.then) for step in sorted(steps, key=_raw) if step.then is not None]
        folders: list[tuple[Step, TreeNode]] = []
        for step, node in nodes:
            if node.kind == FOLDER:
                outcome = self._try(step, partial(self._restore_folder, step, node))
                if outcome.is_done:
                    folders.append((step, node))
                else:
                    self._missing.add(step.raw)
                    yield outcome
        for step, node in nodes:
            if node.kind != FOLDER:
                yield self._try(step, partial(self._restore_file, step, node))
        for step, node in reversed(folders):
            yield self._try(step, partial(self._finish_folder, step, node))
        for step, node in reversed(unlocked):
            self._try(step, partial(self._lock_again, step, node))

    def _unlock(self, steps: list[Step]) -> list[tuple[Step, TreeNode]]:
        """Unlock folders that will be deleted: their content can only be deleted if they are writable."""
        unlocked: list[tuple[Step, TreeNode]] = []
        for step in sorted(steps, key=_raw):
            node = step.now
            if node is None or node.kind != FOLDER or is_folder(step.then):
                continue
            if node.mode & UNLOCKED != UNLOCKED:
                parent, _, name = step.raw.rpartition(b"/")
                with suppress(OSError), self._folder(parent) as fd:
                    if not _impossible(step) and matches_node(fd, name, node):
                        _set_mode(fd, name, node.mode | UNLOCKED, FOLDER_FLAGS)
                        unlocked.append((step, node))
        return unlocked

    def _lock_again(self, step: Step, node: TreeNode) -> _Result:
        """Give an unlocked folder that could not be deleted its mode back."""
        parent, _, name = step.raw.rpartition(b"/")
        with self._folder(parent) as fd:
            if matches_unlocked(fd, name, node):
                _set_mode(fd, name, node.mode, FOLDER_FLAGS)
        return _DONE

    def _try(self, step: Step, change: Callable[[], _Result]) -> Outcome:
        try:
            result = _Result(_impossible(step))
            if not result.problem:
                result = change()
        except TurnlogError as error:
            result = _Result(str(error))
        except OSError as error:
            if error.errno in FULL:
                raise
            result = _Result(error.strerror or str(error))
        return Outcome(step, not result.problem, result.problem, result.note)

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
            self._left.add((parent, name))  # tried again at the end; no checkpoint covers it in any case

    def _temporary(self, step: Step) -> bytes:
        return TEMPORARY + sha256(self._mark + b"\0" + step.raw).hexdigest()[:24].encode()

    # ── deletes ───────────────────────────────────────────────────────────────────────────────────

    def _remove(self, step: Step) -> _Result:
        parent, _, name = step.raw.rpartition(b"/")
        try:
            with self._folder(parent) as fd:
                state = path_state(fd, name)
                if state is None:
                    return _DONE
                if not matches_node(fd, name, step.now) and not matches_unlocked(fd, name, step.now):
                    return _CHANGED
                self._dirty.add(parent)
                if is_folder(step.now):
                    return _Result(_remove_folder(fd, name))
                if path_state(fd, name) != state:
                    return _CHANGED
                os.unlink(name, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError):
            return _DONE
        return _DONE

    # ── folders ───────────────────────────────────────────────────────────────────────────────────

    def _restore_folder(self, step: Step, node: TreeNode) -> _Result:
        """Create or unlock a folder; it gets its final mode when everything in it was restored."""
        parent, _, name = step.raw.rpartition(b"/")
        was_folder = is_folder(step.now)
        with self._folder(parent, make=not was_folder) as fd:
            state = path_state(fd, name)
            if state is not None and state.is_folder:
                return self._reuse_folder(fd, step, node, stat.S_IMODE(state.mode))
            if state is None and was_folder:
                return _CHANGED
            if state is not None and (not matches_node(fd, name, step.now) or path_state(fd, name) != state):
                return _CHANGED
            self._dirty.add(parent)
            aside = None if state is None else self._temporary(step)
            self._make_folder(fd, name, node.mode | UNLOCKED, aside)
            if aside is not None:
                self._discard(fd, parent, aside)
        return _DONE

    def _reuse_folder(self, fd: int, step: Step, node: TreeNode, mode: int) -> _Result:
        """Unlock a folder that is there, with this mode: as before the rewind, or as an interrupted one made it."""
        parent, _, name = step.raw.rpartition(b"/")
        if mode == node.mode or (not is_folder(step.now) and mode == node.mode | UNLOCKED):
            return _DONE
        if not matches_node(fd, name, step.now):
            return _CHANGED
        if mode & UNLOCKED != UNLOCKED:
            self._dirty.add(parent)
            _set_mode(fd, name, node.mode | UNLOCKED, FOLDER_FLAGS)
        return _DONE

    def _make_folder(self, fd: int, name: bytes, mode: int, aside: bytes | None) -> None:
        """Create a folder. A file of that name is moved aside, and restored if the folder cannot be created."""
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

    def _finish_folder(self, step: Step, node: TreeNode) -> _Result:
        """Give a folder its final mode, owner and attributes."""
        parent, _, name = step.raw.rpartition(b"/")
        with self._folder(parent) as fd:
            if path_state(fd, name) is None:
                return _DONE
            self._dirty.add(parent)
            return _Result(note=self._apply_metadata(fd, name, node, FOLDER_FLAGS))

    def _apply_metadata(self, fd: int, name: bytes, node: TreeNode, flags: int) -> str:
        """Set owner, mode and attributes as in the node. Returns what the system does not allow."""
        handle = os.open(name, flags, dir_fd=fd)
        try:
            note = apply_metadata(handle, node.mode, node.extra, self._owner)
            os.fsync(handle)
            return note
        finally:
            os.close(handle)

    # ── files and links ───────────────────────────────────────────────────────────────────────────

    def _restore_file(self, step: Step, node: TreeNode) -> _Result:
        """Restore a file or a link: under a temporary name first, which then takes its place."""
        parent, _, name = step.raw.rpartition(b"/")
        now, was_folder = step.now, is_folder(step.now)
        with self._folder(parent, make=now is None) as fd:
            state = path_state(fd, name)
            if matches_node(fd, name, node) and (now is None or now.extra == node.extra):
                return _DONE
            if (
                not matches_node(fd, name, now)
                and not matches_unlocked(fd, name, now)
                and not (was_folder and state is None)
            ):
                return _CHANGED
            self._dirty.add(parent)
            # The mode of a file with several names belongs to all of them, so this name gets a copy.
            is_same = now is not None and now.kind == node.kind == FILE and now.digest == node.digest
            if is_same and state is not None and state.links == 1:
                return _Result(note=self._apply_metadata(fd, name, node, FILE_FLAGS))
            temporary = self._temporary(step)
            try:
                note = self._make(fd, temporary, node)
                problem, _ = self._take_place(fd, temporary, name, state, was_folder=was_folder)
            except BaseException:
                self._discard(fd, parent, temporary)
                raise
            if problem:
                self._discard(fd, parent, temporary)
            return _Result(problem, "" if problem else note)

    def _make(self, fd: int, name: bytes, node: TreeNode) -> str:
        """Create a file or a link. Returns what the system does not allow."""
        if node.kind == LINK:
            os.symlink(node.target, name, dir_fd=fd)
            return own_link(fd, name, node.extra, self._owner)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(name, flags, 0o600, dir_fd=fd)
        try:
            for piece in self._get(node.digest):
                view = memoryview(piece)
                while view:
                    view = view[os.write(handle, view) :]
            note = apply_metadata(handle, node.mode, node.extra, self._owner)
            os.fsync(handle)
            return note
        finally:
            os.close(handle)

    def _take_place(
        self, fd: int, temporary: bytes, name: bytes, state: PathState | None, *, was_folder: bool
    ) -> _Result:
        """Move a temporary file to its name, where something in this state is replaced."""
        if path_state(fd, name) != state:  # the file was saved while we wrote ours
            return _CHANGED
        if was_folder and state is not None and (problem := _remove_folder(fd, name)):
            return _Result(problem)
        try:
            os.rename(temporary, name, src_dir_fd=fd, dst_dir_fd=fd)
        except OSError:
            if was_folder and state is not None:
                self._make_folder(fd, name, stat.S_IMODE(state.mode), None)
            raise
        return _DONE


def _raw(step: Step) -> bytes:
    return step.raw


def _impossible(step: Step) -> str:
    """Why a step cannot be valid: logs and trees are untrusted input."""
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
