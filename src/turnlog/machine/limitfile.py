"""The limits of subscriptions as agents reported them, with the time of the report. Loads nothing heavy."""

from __future__ import annotations

import json
import os
from typing import Any, cast

from turnlog.machine.environment import state_folder


def keep_limits(agent: str, limits: dict[str, Any], at_s: float) -> None:
    """Store the limits that an agent has just reported, unchanged. Without a state folder, nothing is stored."""
    path = _path(agent)
    if not path:
        return
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({"at": at_s, "told": limits}, file)
    os.replace(temporary, path)


def kept_limits(agent: str) -> tuple[float, dict[str, Any]] | None:
    """The time and the content of an agent's last report; None if there is none."""
    path = _path(agent)
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        return float(kept["at"]), cast("dict[str, Any]", dict(kept["told"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _path(agent: str) -> str:
    folder = state_folder()
    return folder and os.path.join(folder, "limits", f"{agent}.json")
