"""The background process that makes the index, `turnlog index --background`, while queries are answered already.

At most one runs at a time. It ends by itself; if it was stopped, the next query starts it again.
"""

from __future__ import annotations

from turnlog.machine.deferred import defer
from turnlog.machine.detached import begin, is_allowed, is_taken
from turnlog.machine.location import folder_of

__all__ = ["is_allowed", "lock_of", "start"]


def lock_of(path: str) -> str:
    """The path of the lock that the background process of an index holds."""
    return path.removesuffix(".sqlite") + ".making"


def start(path: str, location: str, *, at_end: bool = False) -> bool:
    """Start the process unless it runs; False if that is impossible. With `at_end`, see `machine.deferred`."""
    if is_taken(lock_of(path)):
        return True
    if at_end:
        defer(lambda: _begin(path, location))
    return at_end or bool(_begin(path, location))


def _begin(path: str, location: str) -> int:
    """Begin it. The home is not an argument: everybody on the machine can see those, and it may contain a password."""
    folder = folder_of(location)  # from the root: the process leaves this folder
    return begin(lock_of(path), ["index", "--background"], TURNLOG_HOME=location if folder is None else folder)
