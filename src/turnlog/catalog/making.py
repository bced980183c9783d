"""The index made by a process of its own, `turnlog index --background`, while everybody has an answer already.

There is one at a time, it ends by itself, and whoever asks next starts it again should it have been stopped.
"""

from __future__ import annotations

from turnlog.machine.deferred import defer
from turnlog.machine.detached import begin, is_allowed, is_taken

__all__ = ["is_allowed", "lock_of", "start"]


def lock_of(path: str) -> str:
    """What the process holds that makes the index at that path."""
    return path.removesuffix(".sqlite") + ".making"


def start(path: str, location: str, *, at_end: bool = False) -> bool:
    """See to it that somebody makes the index at that path; False if nobody can. With `at_end`, see `machine.rest`."""
    if is_taken(lock_of(path)):
        return True
    arguments = ["--home", location, "index", "--background"]
    if at_end:
        defer(lambda: begin(lock_of(path), arguments))
    return at_end or bool(begin(lock_of(path), arguments))
