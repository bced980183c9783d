"""The lock of whoever writes an index.

We hold one of our own besides SQLite's: versions of SQLite that come with Python can lose pages where two connections
begin a new write-ahead log at the same moment.
"""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

from turnlog.machine.modules import quick_imports

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.store.files.disk import Held

_PAUSE_S = 0.05


def locked(path: str, waiting: Callable[[], None] | None) -> Held:
    """Acquire the lock in a file. `waiting` is called repeatedly while another process holds it."""
    with quick_imports():
        from turnlog.store.files import disk  # only writers need it
        from turnlog.store.forked import renew_after_fork

    deadline = time.monotonic() + disk.LOCK_WAIT_S
    while True:
        held = disk.Held(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        try:
            renew_after_fork(held)
            while not _try_to_lock(held.fileno()):
                if time.monotonic() > deadline:
                    raise disk.waited_too_long(held.fileno())
                if waiting is not None:
                    waiting()
                time.sleep(_PAUSE_S)
            if os.path.lexists(path) and os.path.samestat(os.fstat(held.fileno()), os.stat(path)):
                return held
        except BaseException:
            held.close()
            raise
        held.close()  # the file was deleted meanwhile, and another process may hold a new one


def _try_to_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
