"""Work behind the user's back: one process at a time, at low priority, that ends by itself. No daemon.

Who wants something done calls `begin`, which starts a `turnlog` of its own and waits for nothing. That one does its
work inside `alone`, with the same lock: of any number that were begun at the same time, one goes on.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from turnlog.errors import Unavailable
from turnlog.machine.environment import environment

VARIABLE = "TURNLOG_BACKGROUND"
"""`off` in the environment forbids it."""
_NICE = 10
_TRIES = 5
_PAUSE_S = 0.02


def is_allowed() -> bool:
    """Whether background processes are allowed; if not, the caller does the work itself first."""
    return environment().get(VARIABLE, "").lower() not in ("off", "no", "0", "false")


def begin(lock: str, arguments: Sequence[str], **variables: str) -> int:
    """Run `turnlog` with these arguments, detached from this terminal. Returns its pid; 0 if the lock is held.

    `variables` are added to its environment, such as the home: everybody on the machine can see the arguments of a
    process. Nothing is raised where it cannot be begun: the next command tries again.
    """
    if not sys.executable or is_taken(lock):
        return 0
    # Without -P, what happens to lie in the current folder would be imported.
    command = [sys.executable, "-P", "-m", "turnlog", *arguments]
    quiet = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited()),
    ]
    try:
        return os.posix_spawn(sys.executable, command, {**environment(), **variables}, file_actions=quiet, setsid=True)
    except (OSError, NotImplementedError):
        return 0


def _inherited() -> list[int]:
    """What whoever began us left open: an agent waits for its pipe as long as somebody has it."""
    try:
        fds = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return []
    return [fd for fd in fds if fd > 2 and _is_inherited(fd)]


def _is_inherited(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False  # that of the listing


@contextmanager
def alone(lock: str) -> Generator[bool]:
    """Whether nobody else has that lock; as long as this goes on, nobody else gets it. Steps back behind other work."""
    fd = _opened(lock)
    try:
        is_ours = _try(fd)
        for _ in range(_TRIES):
            if is_ours:
                break
            time.sleep(_PAUSE_S)  # a process that only looks holds the lock for a moment
            is_ours = _try(fd)
        if is_ours:
            os.nice(max(0, _NICE - os.nice(0)))
        yield is_ours
    finally:
        os.close(fd)


@contextmanager
def in_turn(lock: str, wait_s: float) -> Generator[None]:
    """One after the other: who comes while another has that lock waits for it. Raises `Unavailable` after so long."""
    fd = _opened(lock)
    try:
        end = time.monotonic() + wait_s
        while not _try(fd):
            if time.monotonic() > end:
                raise Unavailable(f"another process has {lock} for more than {wait_s:g} s")
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(fd)


def is_taken(lock: str) -> bool:
    """Whether another process holds the lock."""
    try:
        fd = _opened(lock)
    except OSError:
        return True  # nobody could take it
    try:
        return not _try(fd)
    finally:
        os.close(fd)


def _opened(lock: str) -> int:
    os.makedirs(os.path.dirname(lock), 0o700, exist_ok=True)
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
