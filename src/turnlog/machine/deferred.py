"""Work that a command defers until it has answered. Imports nothing: every command asks."""

from __future__ import annotations

from collections.abc import Callable

_waiting: list[Callable[[], object]] = []


def defer(work: Callable[[], object]) -> None:
    """Do that after the answer is printed: a process started before competes with it for a core."""
    _waiting.append(work)


def run_deferred() -> None:
    """Do the deferred work, in order."""
    while _waiting:
        _waiting.pop(0)()
