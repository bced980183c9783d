"""What is left of an agent's window, as the agent said it: Codex in its files, Claude Code to its status line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from turnlog.interop.value import fields
from turnlog.machine.limitfile import kept_limits

if TYPE_CHECKING:
    from turnlog.catalog import Catalog

_CLAUDE, _CODEX = "claude-code", "codex"
_MINUTES = {"five_hour": 300, "seven_day": 10_080}
_NEWEST = 3
"""How many of the newest files of Codex are searched for limits."""
_TAIL_BYTES = 512 << 10
_LARGEST = 100_000_000_000
"""As seconds, about the year 5000; a percentage or a number of minutes is smaller."""


class AgentLimit(NamedTuple):
    """How much of a window was used up, at the moment when the agent said it."""

    agent: str
    minutes: int
    """How long the window is."""
    used_percent: float
    said_s: float
    """When it was said, in seconds since 1970."""
    resets_s: float | None
    """When the window begins anew, in seconds since 1970, if that was said."""


def current_limits(catalog: Catalog, now_s: float) -> list[AgentLimit]:
    """What was said of windows that are not over yet."""
    reported = [*_of_claude(), *_of_codex([card.path for card in catalog.cards("agent:codex", limit=_NEWEST)])]
    return [one for one in reported if _end(one) > now_s]


def _end(one: AgentLimit) -> float:
    return one.said_s + 60 * one.minutes if one.resets_s is None else one.resets_s


def _of_claude() -> Iterator[AgentLimit]:
    kept = kept_limits(_CLAUDE)
    if kept is None:
        return
    at, limits = kept
    for name, minutes in _MINUTES.items():
        used = _number(limits.get(name), "used_percentage")
        if used is not None:
            yield AgentLimit(_CLAUDE, minutes, used, at, _number(limits.get(name), "resets_at"))


def _of_codex(paths: Iterable[str]) -> list[AgentLimit]:
    """The limits in the newest report of Codex."""
    reports = [(at, limits) for path in paths for at, limits in _in_rollout(path)]
    at, newest = max(reports, key=lambda one: one[0], default=(0.0, cast("dict[str, Any]", {})))
    by_window: list[AgentLimit] = []
    for name in ("primary", "secondary"):
        window = newest.get(name)
        used, minutes = _number(window, "used_percent"), _number(window, "window_minutes")
        if used is not None and minutes:
            resets, left = _number(window, "resets_at"), _number(window, "resets_in_seconds")
            by_window.append(
                AgentLimit(_CODEX, int(minutes), used, at, at + left if resets is None and left is not None else resets)
            )
    return by_window


def _in_rollout(path: str) -> Iterator[tuple[float, dict[str, Any]]]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        if b'"rate_limits"' in line:
            try:
                record = json.loads(line)
                limits = record["payload"]["rate_limits"]
                at = datetime.fromisoformat(record["timestamp"]).timestamp()
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
            if isinstance(limits, dict):
                yield at, cast("dict[str, Any]", limits)
                return


def _number(window: Any, name: str) -> float | None:
    value = fields(window).get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < _LARGEST else None  # JSON has larger ones, Infinity and NaN
