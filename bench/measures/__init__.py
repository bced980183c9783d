"""What `python -m bench` measures: one module each, with `TITLE` and `measure(ground)`, which gives rows.

A row compares a subject with a reference of the same run. Both take turns, in changing order, so that a slow
moment of the machine hits both; a round gives one ratio (or difference), and the median of the rounds counts.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

MODULES = (
    "append", "together", "growth", "load", "tail", "resume", "fork", "listing", "checkpoint", "blame", "hook",
    "statusline", "disk",
    "reading", "start", "catalog", "mcp", "tui", "web", "paint", "postgres", "service", "adapters",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table. `value` is what the bar is about; `rounds` are its values, round by round."""

    measure: str
    subject: str
    reference: str
    value: float
    unit: str
    """`x` for a ratio, otherwise what the difference is counted in."""
    bar: float
    at_least: bool = False
    rounds: Sequence[float] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    """What a reader has to know to judge the value."""

    @property
    def is_met(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    @property
    def spread(self) -> tuple[float, float] | None:
        """Where the middle half of the rounds lies."""
        if len(self.rounds) < 4:
            return None
        low, _, high = statistics.quantiles(self.rounds, n=4, method="inclusive")
        return low, high


def ratio(
    measure: str, times: dict[str, list[float]], subject: str, reference: str, *, bar: float, **facts: Any
) -> Row:
    """How many times the reference's time the subject took. The two names are keys of `times`."""
    rounds = [ours / theirs for ours, theirs in zip(times[subject], times[reference], strict=True)]
    return Row(
        measure,
        f"{subject}: {show_ms(times[subject])}",
        f"{reference}: {show_ms(times[reference])}",
        statistics.median(rounds),
        "x",
        bar,
        rounds=rounds,
        facts=facts | _summary(times, subject, reference),
    )


def difference(
    measure: str, times: dict[str, list[float]], subject: str, reference: str, *, bar: float, **facts: Any
) -> Row:
    """How many milliseconds more than the reference the subject took."""
    rounds = [(ours - theirs) * 1e3 for ours, theirs in zip(times[subject], times[reference], strict=True)]
    return Row(
        measure,
        f"{subject}: {show_ms(times[subject])}",
        f"{reference}: {show_ms(times[reference])}",
        statistics.median(rounds),
        "ms",
        bar,
        rounds=rounds,
        facts=facts | _summary(times, subject, reference),
    )


def _summary(times: dict[str, list[float]], *names: str) -> dict[str, Any]:
    return {
        f"{name}, ms": {"median": statistics.median(times[name]) * 1e3, "min": min(times[name]) * 1e3} for name in names
    }


def show_ms(times: Sequence[float]) -> str:
    return f"{statistics.median(times) * 1e3:.3g} ms"


def take_turns(
    jobs: dict[str, Callable[[], Any]],
    *,
    rounds: int,
    warm: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """The seconds that each job took in each round. Each goes first as often as the others."""
    names = list(jobs)
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-warm, rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            gc.collect()
            start = clock()
            result = jobs[name]()
            took = clock() - start
            del result
            if number >= 0:
                times[name].append(took)
    return times


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
