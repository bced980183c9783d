"""The disk: every call the file store makes to the operating system, and all it knows of its differences.

Tests put another `Disk` in its place to record, to fail, to be slow.
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
from typing import Any

from turnlog.errors import NotFound, OutOfSpace, TurnlogError, Unavailable, Unsupported
from turnlog.store.forked import renew_after_fork

if sys.platform == "win32":  # pragma: no cover
    raise Unsupported("Turnlog's file store does not run on Windows yet", hint="use WSL, or the memory store")

FILE_MODE = 0o600
FOLDER_MODE = 0o700
_OTHERS = 0o077
_LOOK = 4 << 20
"""The bytes that a search reads at once."""
LOCK_WAIT_S = 60.0
_LISTED = 3
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
    """A descriptor that closes itself in one step that nothing can interrupt, and is closed in a child process.

    So `with disk.hold(path):` leaves no lock behind, wherever a signal's exception comes up; a manager written in
    Python can be interrupted at the beginning of its `__exit__`.
    """

    def after_fork(self) -> None:
        """See `Renewable`. The lock stays with the parent."""
        self.close()


class Disk:
    """The operating system as the file store sees it."""

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
        """Whether there is such a file or folder."""
        try:
            self.stat(path)
        except FileNotFoundError:
            return False
        return True

    def discard(self, path: str) -> None:
        """Remove a file that nobody needs."""
        try:
            self.unlink(path)
        except OSError:
            return  # it is not there, or the disk is failing: a leftover that has no session's name harms nobody

    def open(self, path: str, flags: int, *, create: bool = False) -> int:
        """A descriptor of a regular file; never through a symbolic link, never hanging on a pipe."""
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(path, flags | (os.O_CREAT | os.O_EXCL if create else 0), FILE_MODE)
        try:
            if create:
                os.fchmod(fd, FILE_MODE)  # the umask may have taken away what we need ourselves
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
        """A pipe with a name, for this user alone."""
        os.mkfifo(path, FILE_MODE)

    def open_pipe(self, path: str, flags: int) -> int:
        """One end of a pipe; to write, only while somebody reads. Neither end ever waits."""
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.ELOOP, "not a pipe", path)
        return fd

    def write(self, fd: int, data: bytes) -> None:
        """All of it; what a failed call leaves behind is for the caller to cut back."""
        written = self.write_once(fd, data)
        while written < len(data):
            written += self.write_once(fd, memoryview(data)[written:])

    def seek(self, fd: int, offset: int) -> None:
        """Where the next write goes."""
        os.lseek(fd, offset, os.SEEK_SET)

    def link(self, source: str, target: str) -> None:
        """A second name for a file; fails if the name is taken."""
        os.link(source, target, follow_symlinks=False)

    def make_private(self, path: str) -> None:
        """A folder of ours that others can look into is closed; one that is shared on purpose, like `/tmp`, is not."""
        status = os.lstat(path)
        if status.st_mode & _OTHERS and stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX:
            _make_private(path, status, FOLDER_MODE)

    def mkdir(self, path: str) -> None:
        """A private folder."""
        os.mkdir(path, FOLDER_MODE)
        os.chmod(path, FOLDER_MODE)

    if sys.platform == "darwin":  # pragma: no cover

        def sync(self, fd: int) -> None:
            """What was written to the file is on the disk; macOS needs to be told to mean it."""
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)

    else:

        def sync(self, fd: int) -> None:
            """What was written to the file is on the disk."""
            os.fdatasync(fd)

    def reserve(self, fd: int, offset: int, length: int) -> None:
        """Room on the disk behind the end of a file, without making it longer: each sync has less to do then.

        Only a favour: where it cannot be done, nothing is lost but that.
        """
        if sys.platform == "linux" and length:
            _fallocate(fd, offset, length)

    if hasattr(os, "posix_fadvise"):

        def push(self, fd: int, offset: int, length: int) -> None:
            """Start writing these bytes to the disk while the caller updates its state: `sync` then waits less.

            Linux begins to write back what is said to be no longer needed; nothing leaves the cache but whole
            pages that are on the disk already, and errors are left for `sync` to report.
            """
            os.posix_fadvise(fd, offset, length - 1, os.POSIX_FADV_DONTNEED)

    else:  # pragma: no cover

        def push(self, fd: int, offset: int, length: int) -> None:
            """Nothing: this system has no such call."""

    def sync_folder(self, path: str) -> None:
        """The names in a folder are on the disk."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, fd: int) -> None:
        """The writer's lock: the kernel frees it when its holder dies. Waits, but not for ever."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait_for_lock(fd, fcntl.LOCK_EX)

    def try_lock(self, fd: int) -> bool:
        """The same without waiting: whether nobody else has it."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock_shared(self, fd: int) -> None:
        """A lock that many may hold at once, and nobody while another holds the writer's."""
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
        """Whether these bytes are anywhere in a file; not if it is gone."""
        try:
            fd = self.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            offset = 0
            while chunk := self.pread(fd, _LOOK, offset):
                if wanted in chunk:
                    return True
                offset += max(len(chunk) - len(wanted), 1)
                if len(chunk) < _LOOK:
                    break
            return False
        finally:
            self.close(fd)

    def hold(self, path: str, *, shared: bool = False, create: bool = False) -> Held:
        """The file with its lock, until it is closed."""
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
        """Let the next writer in."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def file_system(self, path: str) -> str:
        """The type of the file system a path lies on, as the mount table names it; empty if unknown."""
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


def _make_private(file: int | str, status: os.stat_result, mode: int) -> None:
    """Copied, unpacked or changed, it was open to others. Only who owns it can close it; who reads goes on anyway."""
    if status.st_uid == os.geteuid():
        with suppress(OSError):  # a file system that is read-only, or has no modes
            os.chmod(file, mode)


def waited_too_long(fd: int) -> Unavailable:
    """The error of a process that waited for a lock for `LOCK_WAIT_S`; it names the holder."""
    from turnlog.store.files.holder import name_holders

    try:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:
        name = ""
    what = f"of {name}" if name and not name.startswith(".new-") else "of this log"  # its name came later
    holders = name_holders(fd) or ["another process"]
    more = f" and {len(holders) - _LISTED} more" if len(holders) > _LISTED else ""
    verb = "has" if len(holders) == 1 else "have"
    return Unavailable(
        f"{', '.join(holders[:_LISTED])}{more} {verb} held the lock {what} for {LOCK_WAIT_S:.0f} s",
        hint="end that process, or let it go on: one that is stopped still holds its locks",
    )


class Room:
    """Room that a growing file has behind its end, in proportion to what is there: a small one takes none."""

    __slots__ = ("_is_asked_for", "end")

    _LEAST, _MOST = 16 << 10, 256 << 10

    def __init__(self) -> None:
        self.end = self._LEAST
        """Up to here there is nothing to be done."""
        self._is_asked_for = False

    def make(self, disk: Disk, fd: int, size: int) -> None:
        """Room for what comes after `size`; none for a writer that appends once and is gone."""
        if not self._is_asked_for:
            self._is_asked_for = True
            return
        length = min(max(size // 4, self._LEAST), self._MOST)
        self.end = size + length
        disk.reserve(fd, size, length)


def _fallocate(fd: int, offset: int, length: int) -> None:
    """The system call of that name with FALLOC_FL_KEEP_SIZE, which Python does not offer."""
    import ctypes

    global _libc
    if _libc is None:
        _libc = ctypes.CDLL(None)
        _libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    _libc.fallocate(fd, 1, offset, length)


_libc: Any = None


@contextmanager
def disk_errors(doing: str) -> Generator[None]:
    """Errors of the operating system as errors of ours, with what was being done."""
    try:
        yield
    except OSError as error:
        raise as_error(error, doing) from error


def as_error(error: OSError, doing: str) -> TurnlogError:
    """One error of the operating system as one of ours."""
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
