"""The background process that makes the index, `turnlog index --background`, while queries are answered already.

At most one runs at a time. It ends by itself; if it was stopped, the next query starts it again.
"""

from __future__ import annotations

from turnlog.machine.deferred import defer
from turnlog.machine.detached import begin, is_allowed, is_taken

__all__ = ["is_allowed", "lock_of", "start"]


def lock_of(path: str) -> str:
    """The path of the lock that the background process of an index holds."""
    return path.removesuffix(".sqlite") + ".making"


def start(path: str, location: str, *, at_end: bool = False) -> bool:
    """Start the process unless it runs; False if that is impossible. With `at_end`, see `machine.deferred`."""
    if is_taken(lock_of(path)):
        return True
    arguments = ["--home", location, "index", "--background"]
    if at_end:
        defer(lambda: begin(lock_of(path), arguments))
    return at_end or bool(begin(lock_of(path), arguments))
