"""The identity of this process, and whether another one still runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypedDict

    class ProcessIdentity(TypedDict):
        """What identifies a process among all others, now or later: its pid alone does not."""

        pid: int
        started: str | None
        """Its start time in clock ticks since the machine was started; None without `/proc`."""
        host: str
        boot: str | None
        """The id of the start of the machine; None without `/proc`."""
        namespace: str | None
        """The namespace of process ids; None without `/proc`."""


_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "busybox", "tcsh", "csh"})


def this_process() -> ProcessIdentity:
    """The identity of this process."""
    return process_of(os.getpid())


def this_person() -> str:
    """Who runs this process, and where."""
    import pwd

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    return f"{name}@{host_name()}"


def host_name() -> str:
    """The name of this machine."""
    return os.uname().nodename


def process_of(pid: int) -> ProcessIdentity:
    """The identity of another process that runs on this machine now."""
    return {
        "pid": pid,
        "started": _read_word(f"/proc/{pid}/stat", after=")", index=19),
        "host": host_name(),
        "boot": _read_word("/proc/sys/kernel/random/boot_id"),
        "namespace": _read_link("/proc/self/ns/pid"),  # where it counts for us
    }


def caller(pid: int) -> int:
    """The program behind a process: the process itself or its nearest ancestor that is no shell; 0 if there is none."""
    while pid > 1:
        name, parent = _name_and_parent(pid)
        if name is None:
            return 0
        if name.lstrip("-") not in _SHELLS:
            return pid
        pid = parent
    return 0


def _name_and_parent(pid: int) -> tuple[str | None, int]:
    """The name of a process, None if it is gone or hidden, and the pid of its parent."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
        return text[text.index("(") + 1 : text.rindex(")")], int(text.rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return _name_and_parent_from_ps(pid) if not os.path.exists("/proc/self/stat") else (None, 0)
    except (OSError, ValueError):
        return None, 0


def _name_and_parent_from_ps(pid: int) -> tuple[str | None, int]:
    """The name of a process and its parent, on systems without `/proc`."""
    import subprocess

    try:
        answer = subprocess.run(
            ["/bin/ps", "-o", "ppid=,comm=", "-p", str(pid)], capture_output=True, text=True, timeout=1, check=True
        ).stdout.split(None, 1)
        return os.path.basename(answer[1].strip()), int(answer[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None, 0


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _read_word(path: str, *, after: str = "", index: int = 0) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return None
    words = text.rpartition(after)[2].split() if after else text.split()
    return words[index] if index < len(words) else None


def runs(who: Mapping[str, Any]) -> bool | None:
    """Whether the process with that identity still runs; None if it cannot be checked from here."""
    here = this_process()
    if who.get("host") != here["host"]:
        return None
    if who.get("boot") != here["boot"]:
        return False
    if who.get("namespace") is not None and who.get("namespace") != here["namespace"]:
        return None
    started = _read_word(f"/proc/{who.get('pid')}/stat", after=")", index=19)
    if here["started"] is not None:
        return started is not None and started == who.get("started")
    try:
        os.kill(int(who.get("pid") or 0), 0)
    except PermissionError:
        return True  # it is another user's
    except OSError:
        return False
    return True


def may_run(who: Mapping[str, Any]) -> bool:
    """Whether that process runs, or may run where it cannot be checked."""
    return runs(who) is not False
