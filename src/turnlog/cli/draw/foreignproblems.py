"""Prints on stderr the problems of reading other agents' sessions, up to 25, and the report of writing one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from turnlog.cli.frame.notes import note, tell
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.exchange.exporting.resumable import HandoverReport
    from turnlog.formats import Problem
    from turnlog.formats._shared.transcript import Loss

_EACH = 5
_ALL = 25


def tell_problems(problems_by_file: Iterable[tuple[str, Sequence[Problem]]]) -> None:
    """Print the first problems of each file, and how many more there are."""
    sys.stdout.flush()  # the result comes first, also where both go to one file
    printed = more = 0
    for path, problems in problems_by_file:
        some = problems[: max(0, min(_EACH, _ALL - printed))]
        for problem in some:
            tell(f"problem: {path}{_where(problem)}: {problem.what}")
        printed += len(some)
        more += len(problems) - len(some)
    if more:
        tell(f"{count(more, 'more problem')}; --json has all")


def _where(problem: Problem) -> str:
    offset = f", byte {problem.offset:,}" if problem.offset is not None else ""
    return f"{offset} ({problem.where})" if problem.where else offset


def tell_report(report: HandoverReport) -> None:
    """Print what was carried over, changed and lost when a session was written for another agent."""
    sys.stdout.flush()
    if report.carried is not None:
        parts = [count(report.carried.messages, "message")]
        if report.carried.tool_calls or report.carried.tool_results:
            parts += [count(report.carried.tool_calls, "tool call"), count(report.carried.tool_results, "result")]
        tell(f"carried: {', '.join(parts)}")
    for loss in report.changed:
        tell(f"changed: {_times(loss)}; instead: {loss.instead}")
    for loss in report.lost:
        tell(f"lost: {_times(loss)}")
    for text in report.notes:
        note(text)


def _times(loss: Loss) -> str:
    return f"{loss.what} ({loss.count:,} times)" if loss.count > 1 else loss.what
