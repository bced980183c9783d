"""The usage of runs: the SDK counts in one object for each, and adds items several times during a run."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnlog.log.usage import Usage

_RUNS = 16
"""The counts of so many runs are remembered."""


class RunUsage(NamedTuple):
    """The usage of a run at one time."""

    counter: Any
    """The object in which the SDK counts."""
    total: Usage
    unrecorded: Usage


class RecordedUsage:
    """How much of the usage of the newest runs was recorded. Whoever uses it holds a lock."""

    def __init__(self) -> None:
        self._recorded: list[RunUsage] = []

    def unrecorded(self, wrapper: Any) -> RunUsage | None:
        """The usage of a run beyond what was recorded of it; None if there is no more."""
        counter = getattr(wrapper, "usage", None)
        if counter is None:
            return None
        total = _total(counter)
        recorded = next((run.total for run in self._recorded if run.counter is counter), Usage())
        more = total.beyond(recorded)
        return None if more == Usage() else RunUsage(counter, total, more)

    def record(self, usage: RunUsage) -> None:
        """Remember what was recorded of a run."""
        others = [run for run in self._recorded if run.counter is not usage.counter]
        self._recorded = [*others[1 - _RUNS :], usage]


def _total(counter: Any) -> Usage:
    cached = _count(getattr(counter, "input_tokens_details", None), "cached_tokens")
    return Usage(
        input_tokens=max(0, _count(counter, "input_tokens") - cached),
        cache_read_tokens=cached,
        output_tokens=_count(counter, "output_tokens"),
        reasoning_tokens=_count(getattr(counter, "output_tokens_details", None), "reasoning_tokens"),
    )


def _count(counts: Any, name: str) -> int:
    return int(getattr(counts, name, 0) or 0)
