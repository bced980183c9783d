"""Resources that a forked child process must recreate: descriptors, connections, threads and locks are its parent's."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """An object with resources that a child process must not use."""

    def after_fork(self) -> None:
        """In the child process: abandon the parent's resources and create new ones."""
        ...


def renew_after_fork(holder: Renewable) -> None:
    """Call the holder's `after_fork` in every child process from now on, as long as the holder lives."""
    _holders.add(holder)


def _renew_all() -> None:
    for holder in list(_holders):
        holder.after_fork()


_holders: WeakSet[Renewable] = WeakSet()
os.register_at_fork(after_in_child=_renew_all)
