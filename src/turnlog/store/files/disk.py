"""The disk: every system call of the file store, and the differences between operating systems.

Tests replace `Disk` to record calls, to fail, or to be slow.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from turnlog.errors import NotFound, OutOfSpace, TurnlogError, Unavailable, Unsupported
from turnlog.store.files.names import is_temporary
from turnlog.store.forked import renew_after_fork

if sys.platform == "win32":  # pragma: no cover
    raise Unsupported("Turnlog's file store does not run on Windows yet", hint="use WSL, or the memory store")

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077
_SEARCH_STEP = 4 << 20
"""The number of bytes that a search reads at once."""
LOCK_WAIT_S = 60.0
_MAX_HOLDERS = 3
"""The most holders of a lock that an error names."""
_REMOTE = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "afpfs",
        "webdav",
        "davfs",
        "fuse.sshfs",
        "fuse.davfs",
        "fuse.rclone",
        "9p",
        "afs",
        "drvfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
    ]
)


class Held(io.FileIO):
    """A descriptor that is closed in one step that cannot be interrupted, and that is closed in a child process.

    So `with disk.hold(path):` leaves no lock behind, wherever a signal raises an exception. A context manager in Python
    can be interrupted at the beginning of its `__exit__`.
    """

    def after_fork(self) -> None:
        """See `Renewable`. The lock stays with the parent."""
        self.close()


class Disk:
    """The operating system, as the file store uses it."""

    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.stat)
    ftruncate = staticmethod(os.ftruncate)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    listdir = staticmethod(os.listdir)
    write_once = staticmethod(os.write)
    pwrite = staticmethod(os.pwrite)

    def exists(self, path: str) -> bool:
        """Whether a file or folder with that path exists."""
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def discard(self, path: str) -> None:
        """Remove an unneeded file. Errors are ignored."""
        try:
            self.unlink(path)
        except OSError:
            return  # it is gone, or the disk is failing: a leftover without a session's name does no harm

    def remove_tree(self, path: str) -> None:
        """Remove a folder with everything in it. Another process may be removing it, too."""
        import shutil  # slow to load, and rarely needed

        while self.exists(path):
            with suppress(FileNotFoundError):
                shutil.rmtree(path)

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        """Open a regular file. Never follows a symbolic link, never blocks on a pipe."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(path, flags | (os.O_CREAT | os.O_EXCL if create else 0), FILE_MODE)
        try:
            if create:
                os.fchmod(fd, FILE_MODE)  # the umask may have removed our own permissions
            else:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.ELOOP, "not a regular file", path)
                if status.st_mode & _OTHERS:
                    _make_private(fd, status, FILE_MODE)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def make_pipe(self, path: str) -> None:
        """Create a named pipe for this user only."""
        os.mkfifo(path, FILE_MODE)

    def open_pipe(self, path: str, flags: int) -> int:
        """Open one end of a pipe; for writing, only while it has a reader. Neither end ever blocks."""
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, "not a pipe", path)
        return fd

    def write(self, fd: int, data: bytes) -> None:
        """Write all of the data. If a call fails, the caller has to truncate the partial write."""
        written = self.write_once(fd, data)
        while written < len(data):
            written += self.write_once(fd, memoryview(data)[written:])

    def seek(self, fd: int, offset: int) -> None:
        """Set the offset of the next write."""
        os.lseek(fd, offset, os.SEEK_SET)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fails if the name is taken."""
        os.link(source, target, follow_symlinks=False)

    def make_private(self, path: str) -> None:
        """Remove other users' access to a folder of ours, unless it is shared on purpose, like `/tmp`."""
        status = os.lstat(path)
        if status.st_mode & _OTHERS and stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX:
            _make_private(path, status, FOLDER_MODE)

    def mkdir(self, path: str) -> None:
        """Create a private folder."""
        os.mkdir(path, FOLDER_MODE)
        os.chmod(path, FOLDER_MODE)

    if sys.platform == "darwin":  # pragma: no cover

        def sync(self, fd: int) -> None:
            """Sync the file's data to the disk; macOS needs a special call for that."""
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

    else:

        def sync(self, fd: int) -> None:
            """Sync the file's data to the disk."""
            os.fdatasync(fd)

    if hasattr(os, "posix_fadvise"):

        def push(self, fd: int, offset: int, length: int) -> None:
            """Start writing these bytes to the disk while the caller updates its state: `sync` then waits less.

            Linux starts to write back pages that are declared unneeded. Only whole pages that are already on the disk
            leave the cache, and `sync` still reports errors.
            """
            os.posix_fadvise(fd, offset, length - 1, os.POSIX_FADV_DONTNEED)

    else:  # pragma: no cover

        def push(self, fd: int, offset: int, length: int) -> None:
            """Do nothing: this system has no such call."""

    def sync_folder(self, path: str) -> None:
        """Sync the names in a folder to the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, fd: int) -> None:
        """Take the writer's lock, which the kernel frees when its holder dies. Waits up to a limit."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_lock(fd, fcntl.LOCK_EX)

    def try_lock(self, fd: int) -> bool:
        """Try to take the writer's lock without waiting. Returns whether that succeeded."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock_shared(self, fd: int) -> None:
        """Take the shared lock: several may hold it at once, but not while another process has the writer's lock."""
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_lock(fd, fcntl.LOCK_SH)

    def _wait_for_lock(self, fd: int, kind: int) -> None:
        deadline = time.monotonic() + LOCK_WAIT_S
        pause = 0.0001
        while True:
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
            try:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise waited_too_long(fd) from None
            else:
                return

    def holds(self, path: str, wanted: bytes) -> bool:
        """Whether a file contains these bytes; False if it is gone."""
        try:
            fd = self.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            offset = 0
            while chunk := self.pread(fd, _SEARCH_STEP, offset):
                if wanted in chunk:
                    return True
                offset += max(len(chunk) - len(wanted), 1)
                if len(chunk) < _SEARCH_STEP:
                    break
            return False
        finally:
            self.close(fd)

    def hold(self, path: str, *, shared: bool = False, create: bool = False) -> Held:
        """Open a file with its lock, which is held until the file is closed."""
        held: Held | None = None
        try:
            held = Held(self._open_or_make(path) if create else self.open(path, os.O_RDONLY))
            renew_after_fork(held)
            if shared:
                self.lock_shared(held.fileno())
            else:
                self.lock(held.fileno())
            return held
        except BaseException:
            if held is not None:
                held.close()
            raise

    def _open_or_make(self, path: str) -> int:
        try:
            return self.open(path, os.O_RDWR, create=True)
        except FileExistsError:
            return self.open(path, os.O_RDWR)

    def unlock(self, fd: int) -> None:
        """Release the lock."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def file_system(self, path: str) -> str:
        """Return the type of the file system of a path, as the mount table names it; "" if unknown."""
        try:
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
                device = os.stat(path).st_dev
                wanted = f"{os.major(device)}:{os.minor(device)}"
                for row in table:
                    left, _, right = row.partition(" - ")
                    if left.split(" ", 3)[2] == wanted:
                        return right.split(" ", 1)[0]
        except OSError:
            return ""
        return ""

    def refuse_remote(self, path: str) -> None:
        """Raise `Unsupported` on a network file system: locks and appends are not reliable there."""
        kind = self.file_system(path)
        if kind in _REMOTE:
            raise Unsupported(
                f"{path} is on a network file system ({kind}), where locks and appends are not safe",
                hint="point TURNLOG_HOME at a local folder, or use the postgres store",
            )


def open_locked(disk: Disk, path: str) -> Held | None:
    """Open the file that has this name now, with the writer's lock; None if there is none, or no longer.

    A file that was opened may be replaced or moved while this waits for its lock.
    """
    while True:
        held: Held | None = None
        try:
            held = disk.hold(path)
            if os.path.samestat(disk.fstat(held.fileno()), disk.stat(path)):
                return held
        except FileNotFoundError:
            if held is not None:
                held.close()
            return None
        except BaseException:
            if held is not None:
                held.close()
            raise
        held.close()


def _make_private(file: int | str, status: os.stat_result, mode: int) -> None:
    """Remove other users' access to a file that was copied or unpacked. Only the owner can; others just continue."""
    if status.st_uid == os.geteuid():
        with suppress(OSError):  # a file system that is read-only, or has no modes
            os.chmod(file, mode)


def waited_too_long(fd: int) -> Unavailable:
    """Return the error for a process that waited for a lock for `LOCK_WAIT_S`; it names the holders."""
    from turnlog.store.files.holder import name_holders

    try:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}")).removesuffix(" (deleted)")
    except OSError:
        name = ""
    what = f"of {name}" if name and not is_temporary(name) else "of this log"  # the file got its name later
    holders = name_holders(fd) or ["another process"]
    more = f" and {len(holders) - _MAX_HOLDERS} more" if len(holders) > _MAX_HOLDERS else ""
    verb = "has" if len(holders) == 1 else "have"
    return Unavailable(
        f"{', '.join(holders[:_MAX_HOLDERS])}{more} {verb} held the lock {what} for {LOCK_WAIT_S:.0f} s",
        hint="end that process, or let it go on: one that is stopped still holds its locks",
    )


@contextmanager
def disk_errors(doing: str) -> Generator[None]:
    """Raise the operating system's errors as Turnlog's; `doing` says what failed."""
    try:
        yield
    except OSError as error:
        raise as_error(error, doing) from error


def as_error(error: OSError, doing: str) -> TurnlogError:
    """Convert an error of the operating system to one of Turnlog's."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return OutOfSpace(f"{doing}: {reason}", hint="free some space; nothing was changed")
    if error.errno == errno.ENOENT:
        return NotFound(f"{doing}: {reason}", hint="it may have been deleted or moved")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Unavailable(f"{doing}: {reason}", hint="check the owner and mode of the folder")
    if error.errno == errno.ENOTDIR:
        return Unavailable(f"{doing}: {reason}", hint="a home is a folder: choose another place for it")
    if error.errno == errno.ELOOP:
        return Unavailable(f"{doing}: a link or a special file where a file should be")
    return Unavailable(f"{doing}: {reason}", hint="retrying with the same drafts is safe")
