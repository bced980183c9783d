"""The processes that hold a lock, if the system reports them: for the error of a process that waited too long."""

from __future__ import annotations

import os
from collections.abc import Iterator


def name_holders(fd: int) -> list[str]:
    """Describe the processes that hold a lock on this file; an empty list if the system does not report them."""
    try:
        return [_describe(pid) for pid in sorted(set(_holders(fd)))]
    except OSError:
        return []


def _holders(fd: int) -> Iterator[int]:
    """Yield the processes that locked this file, or inherited the descriptor of a dead process that did."""
    status = os.fstat(fd)
    inode = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with open("/proc/locks", encoding="ascii", errors="replace") as table:
        rows = [row.split() for row in table]
    for row in rows:
        if row[1] != "FLOCK" or not row[5].endswith(f":{status.st_ino}"):
            continue
        pid = int(row[4])
        if pid > 0 and os.path.exists(f"/proc/{pid}"):
            if row[5] == inode or _locks(pid, status):
                yield pid
        else:
            yield from (int(name) for name in os.listdir("/proc") if name.isdecimal() and _locks(int(name), status))


def _locks(pid: int, status: os.stat_result) -> bool:
    """Whether a process has that file open with a lock on it."""
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), status):
                with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii", errors="replace") as info:
                    if "FLOCK" in info.read():
                        return True
    except OSError:
        return False  # it ended meanwhile, or belongs to another user
    return False


def _describe(pid: int) -> str:
    if pid == os.getpid():
        return f"this process ({pid})"
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(400).decode("utf-8", "replace").split("\0")
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except OSError:
        return f"process {pid}"
    command = " ".join("".join(c if c.isprintable() else "?" for c in word) for word in words).strip()
    stopped = ", which is stopped," if state in "Tt" else ""
    return f"process {pid} ({command[:80]}){stopped}" if command else f"process {pid}{stopped}"
