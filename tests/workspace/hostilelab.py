"""A small project, a turn in it, and a system that fails or kills at the n-th call.

The calls counted are those of the store's disk and those that the workspace makes itself: `os` is replaced by a
stand-in in its modules.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnlog import Home, Session
from turnlog.log.entry import Checkpoint
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk
from turnlog.workspace import handle, ignoredscan, metadata, pathstate, read, restore, scan, sink
from turnlog.workspace.tree import FILE, TreeNode, decode_tree, files

ONE = "one"
CHANGING = frozenset((
    "create", "write", "write_once", "pwrite", "fsync", "sync", "sync_folder", "ftruncate", "rename", "link", "symlink",
    "unlink", "mkdir", "rmdir", "fchmod",
))  # fmt: skip
"""Calls before which a kill is worth while: whatever only looks leaves nothing behind."""
_CALLS = (
    "open", "write", "fsync", "rename", "symlink", "unlink", "mkdir", "rmdir", "fchmod", "stat", "lstat", "fstat",
    "read", "readlink", "scandir", "listdir", "dup",
)  # fmt: skip
_DISK_CALLS = (
    "open", "write_once", "pwrite", "sync", "sync_folder", "pread", "fstat", "stat", "ftruncate", "rename", "link",
    "unlink", "mkdir", "listdir",
)  # fmt: skip
Before = Callable[[str], None]


class System:
    """What stands for `os`: the same, but somebody is told before each call."""

    def __init__(self, before: Before) -> None:
        for name in _CALLS:
            setattr(self, name, self._told(name, getattr(os, name), before))

    @staticmethod
    def _told(name: str, call: Any, before: Before) -> Any:
        def told(*args: Any, **options: Any) -> Any:
            is_new = name == "open" and (options.get("create") or args[1] & os.O_CREAT)
            before("create" if is_new else name)
            return call(*args, **options)

        return told

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def disk_that_tells(before: Before) -> Disk:
    """The store's disk, with the same somebody."""
    disk = Disk()
    for name in _DISK_CALLS:
        setattr(disk, name, System._told(name, getattr(disk, name), before))
    return disk


class Faults:
    """Counts calls; the n-th fails, or every one from the n-th on, or it is the end of the process."""

    def __init__(self, at: int = 0, *, error: int = errno.EIO, for_ever: bool = False, kill: bool = False) -> None:
        self.calls = 0
        self.failed: list[str] = []
        self._at = at
        self._error = error
        self._for_ever = for_ever
        self._kill = kill

    def before(self, name: str) -> None:
        if self._kill and name not in CHANGING:
            return
        self.calls += 1
        if self._at and (self.calls == self._at or (self._for_ever and self.calls > self._at)):
            if self._kill:
                os.kill(os.getpid(), signal.SIGKILL)
            self.failed.append(name)
            raise OSError(self._error, os.strerror(self._error))

    def heal(self) -> None:
        self._at = 0


@contextmanager
def standing_in(before: Before) -> Iterator[None]:
    """The workspace asks a stand-in instead of the system."""
    modules: list[Any] = [handle, ignoredscan, metadata, pathstate, read, restore, scan, sink]
    system = System(before)
    for module in modules:
        module.os = system
    try:
        yield
    finally:
        for module in modules:
            module.os = os


# ── a project ─────────────────────────────────────────────────────────────────────────────────────


class World:
    """A home, a project and a session `one` with one turn in which a bit of everything happened."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.project = place / "project"
        self.outside = place / "outside"

    def make(self) -> None:
        self.project.mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "secret").write_text("not yours")
        (self.project / "src").mkdir()
        (self.project / "src/a.py").write_bytes(b"one\r\ntwo\n")
        (self.project / "src/b.py").write_text("b\n")
        (self.project / "src/b.py").chmod(0o755)
        (self.project / "swap").write_text("a file that becomes a folder")
        (self.project / "old").mkdir()
        (self.project / "old/c").write_text("c")
        (self.project / "link").symlink_to("src/a.py")
        self.age()
        with self.home() as home:
            session = home.create(id=ONE, workspace=self.project)
            with session.turn():
                session.user("go")
                self.work()

    def work(self) -> None:
        """What the turn does."""
        (self.project / "src/a.py").write_text("changed\n")
        (self.project / "src/b.py").chmod(0o600)
        (self.project / "swap").unlink()
        (self.project / "swap").mkdir()
        (self.project / "swap/inner").write_text("inner")
        shutil.rmtree(self.project / "old")
        (self.project / "link").unlink()
        (self.project / "link").symlink_to("elsewhere")
        (self.project / "new").mkdir(mode=0o750)
        (self.project / "new/f").write_bytes(b"\0\1")

    def age(self) -> None:
        """Old enough for a scan to rely on what it saw; ctime cannot be set, so this is for mtime only."""
        for path in self.project.rglob("*"):
            if not path.is_symlink():
                os.utime(path, (1, 1))

    def home(self, disk: Disk | None = None) -> Home:
        return Home(connect(str(self.place / "home"), disk=disk))

    def files(self) -> dict[str, tuple[Any, ...]]:
        return everything(self.project)

    def leftovers(self) -> list[str]:
        """What is half done in the project or the home."""
        found = [str(path) for path in self.project.rglob(".turnlog-*")]
        return found + [str(path) for path in (self.place / "home").rglob(".new-*")]


def everything(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every path below a folder: what it is, its mode, and what is in it."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(folder.rglob("*")):
        name, status = str(path.relative_to(folder)), path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("folder", oct(status.st_mode))
        elif stat.S_ISREG(status.st_mode):
            found[name] = ("file", oct(status.st_mode), path.read_bytes())
        else:
            found[name] = ("special", oct(status.st_mode))
    return found


class Base:
    """A world made once, and put back to what it was before each try: paths stay what they are."""

    def __init__(
        self, place: Path, prepare: Callable[[World, Session, Home], Any] | None = None, world: World | None = None
    ) -> None:
        self.world = world or World(place / "world")
        self._saved = place / f"saved-{len(os.listdir(place)) if place.exists() else 0}"
        if world is None:
            self.world.make()
        if prepare is not None:
            with self.world.home() as home:
                prepare(self.world, home.resume(ONE), home)
        shutil.copytree(self.world.place, self._saved, symlinks=True)
        self.start = self.world.files()

    def fresh(self) -> World:
        shutil.rmtree(self.world.place)
        shutil.copytree(self._saved, self.world.place, symlinks=True)
        return self.world


# ── what is done ──────────────────────────────────────────────────────────────────────────────────


def checkpoint(session: Session, home: Home) -> Any:
    return session.checkpoint("now")


def rewind(session: Session, home: Home) -> Any:
    return session.rewind(before=next(e for e in session.entries(kind="message")))


def undo(session: Session, home: Home) -> Any:
    return session.undo()


def finish(session: Session, home: Home) -> Any:
    return session.finish_rewind()


def abort(session: Session, home: Home) -> Any:
    return session.finish_rewind(abort=True)


def gc(session: Session, home: Home) -> Any:
    return home.gc()


ACTS: dict[str, Callable[[Session, Home], Any]] = {
    act.__name__: act for act in (checkpoint, rewind, undo, finish, abort, gc)
}


def dies(world: World, act: str, at: int) -> bool:
    """Do something in a process of its own that is killed before its n-th change; whether it came to that."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            faults = Faults(at, kill=True)
            with standing_in(faults.before):
                home = world.home(disk_that_tells(faults.before))
                ACTS[act](home.resume(ONE), home)
            code = 0
        except BaseException as error:
            sys.stderr.write(f"{act} at {at}: {type(error).__name__}: {error}\n")
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.waitstatus_to_exitcode(status) == 0, f"{act} failed with nothing wrong, at {at}"
    return False


def paths_in(home: Home, point: Checkpoint) -> dict[bytes, TreeNode]:
    """Every path in a checkpoint. All that is in its files is read, and so verified."""
    found: dict[bytes, TreeNode] = {}
    for root in point.roots:
        found |= dict(files(decode_tree(home.get_blob(root.tree)), lambda name: decode_tree(home.get_blob(name))))
    for node in found.values():
        if node.kind == FILE:
            home.get_blob(node.digest)
    return found


def in_parallel(*jobs: Callable[[], Any]) -> list[int]:
    """Each in a process of its own, all at once; their exit codes."""
    children: list[int] = []
    for job in jobs:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                job()
                code = 0
            except BaseException as error:
                sys.stderr.write(f"{job}: {type(error).__name__}: {error}\n")
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
