"""What a forked child process has to begin anew: descriptors, connections, threads and locks are its parent's."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something that holds what a child process must not use."""

    def after_fork(self) -> None:
        """In the child: let go of it, and begin anew."""
        ...


def renew_after_fork(holder: Renewable) -> None:
    """Have `after_fork` called in every child process from now on, for as long as the holder lives."""
    _holders.add(holder)


def _renew_all() -> None:
    for holder in list(_holders):
        holder.after_fork()


_holders: WeakSet[Renewable] = WeakSet()
os.register_at_fork(after_in_child=_renew_all)
