"""The index made by a process of its own, `turnlog index --background`, while everybody has an answer already.

There is one at a time, it ends by itself, and whoever asks next starts it again should it have been stopped.
"""

from __future__ import annotations

from turnlog.machine.environment import environment

VARIABLE = "TURNLOG_BACKGROUND"
"""`off` forbids it: then whoever asks reads everything first."""


def is_allowed() -> bool:
    """Whether a process of its own may be started."""
    return environment().get(VARIABLE, "").lower() not in ("off", "no", "0", "false")


def lock_of(path: str) -> str:
    """What the process holds that makes the index at that path."""
    return path.removesuffix(".sqlite") + ".making"


def start(path: str, location: str) -> bool:
    """See to it that somebody makes the index at that path; False if nobody can."""
    from turnlog.machine.detached import begin, is_taken

    return is_taken(lock_of(path)) or bool(begin(lock_of(path), ["--home", location, "index", "--background"]))
