"""What agents said of the limits of their subscriptions, with the time when they said it. Loads nothing heavy."""

from __future__ import annotations

import json
import os
from typing import Any, cast

from turnlog.machine.environment import state_folder


def keep_limits(agent: str, limits: dict[str, Any], at_s: float) -> None:
    """What an agent said just now, as it said it; where there is no place for it, nothing is kept."""
    path = _path(agent)
    if not path:
        return
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump({"at": at_s, "told": limits}, file)
    os.replace(temporary, path)


def kept_limits(agent: str) -> tuple[float, dict[str, Any]] | None:
    """What it said last, and when; None where nothing is known."""
    path = _path(agent)
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        return float(kept["at"]), cast("dict[str, Any]", dict(kept["told"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _path(agent: str) -> str:
    folder = state_folder()
    return folder and os.path.join(folder, "limits", f"{agent}.json")
