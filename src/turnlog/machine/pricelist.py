"""Where lists of prices lie on this machine, and whether they are still the same. Loads nothing."""

from __future__ import annotations

import os

from turnlog.machine.environment import config_folder, state_folder


def bundled() -> str:
    """The list that comes with Turnlog."""
    return os.path.join(os.path.dirname(os.path.dirname(__file__)), "pricing", "prices.json")


def updated() -> str:
    """Where a newer one is kept; "" where there is no place for it."""
    folder = state_folder()
    return folder and os.path.join(folder, "prices.json")


def own() -> str:
    """Where a person's own prices are."""
    return os.path.join(config_folder(), "turnlog", "prices.json")


def stamp() -> str:
    """Another text whenever prices may be others, without reading them."""
    return " ".join(map(_stamp_of, (bundled(), updated(), own())))


def _stamp_of(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "-"
    return f"{status.st_size}.{status.st_mtime_ns}"
