"""The files with prices on this machine, and a stamp that changes with them. Loads nothing."""

from __future__ import annotations

import os

from turnlog.machine.environment import config_folder, state_folder


def bundled() -> str:
    """The path of the list that comes with Turnlog."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "pricing", "prices.json")


def updated() -> str:
    """The path of a newer list; "" if there is no folder for one."""
    folder = state_folder()
    return folder and os.path.join(folder, "prices.json")


def own() -> str:
    """The path of the user's own prices."""
    return os.path.join(config_folder(), "turnlog", "prices.json")


def stamp() -> str:
    """A text that differs whenever the prices may differ. Reads none of them."""
    return " ".join(map(_stamp_of, (bundled(), updated(), own())))


def _stamp_of(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_size}.{status.st_mtime_ns}"
