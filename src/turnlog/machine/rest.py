"""What a command leaves for when it has answered. Loads nothing: every command asks."""

from __future__ import annotations

from collections.abc import Callable

_waiting: list[Callable[[], object]] = []


def leave(work: Callable[[], object]) -> None:
    """Do that when everything is said: a process that is begun before takes its core from whoever waits for it."""
    _waiting.append(work)


def do_rest() -> None:
    """Do what was left, in that order."""
    while _waiting:
        _waiting.pop(0)()
