"""What was wrong with sessions of other agents, and what they could not take: said on stderr, at no great length."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from turnlog.cli.draw.text import one_line, tell
from turnlog.cli.frame import shape
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.exchange.resumable import HandoverReport
    from turnlog.formats import Loss, Problem

SOURCE = {"agent": shape.text(), "path": shape.text(), "key": shape.text("which session, if a file has several")}
"""Where a session of another agent lies, as `--json` has it."""
PROBLEM = {
    "what": shape.text(),
    "[where]": shape.text(),
    "[offset]": shape.number(null=True),
    "[length]": shape.number(null=True),
    "[is_news]": shape.flag("a record of an unknown type, not an error"),
}
_EACH = 5
_ALL = 25


def tell_problems(problems_by_file: Iterable[tuple[str, Sequence[Problem]]]) -> None:
    """The first problems of the first sources that have any, and how many there are besides."""
    sys.stdout.flush()  # what it is about comes first, also where both go to one file
    printed = more = 0
    for path, problems in problems_by_file:
        some = problems[: max(0, min(_EACH, _ALL - printed))]
        for problem in some:
            print(one_line(f"problem: {path}{_where(problem)}: {problem.what}"), file=sys.stderr)
        printed += len(some)
        more += len(problems) - len(some)
    if more:
        print(f"{count(more, 'more problem')}; --json has all", file=sys.stderr)


def _where(problem: Problem) -> str:
    offset = f", byte {problem.offset:,}" if problem.offset is not None else ""
    return f"{offset} ({problem.where})" if problem.where else offset


def tell_report(report: HandoverReport) -> None:
    """What became of a session that was written for another agent."""
    sys.stdout.flush()
    if report.carried is not None:
        parts = [count(report.carried.messages, "message")]
        if report.carried.tool_calls or report.carried.tool_results:
            parts += [count(report.carried.tool_calls, "tool call"), count(report.carried.tool_results, "result")]
        print(f"carried: {', '.join(parts)}", file=sys.stderr)
    for loss in report.changed:
        tell(f"changed: {_times(loss)}; instead: {loss.instead}")
    for loss in report.lost:
        tell(f"lost: {_times(loss)}")
    for note in report.notes:
        tell(f"note: {note}")


def _times(loss: Loss) -> str:
    return f"{loss.what} ({loss.count:,} times)" if loss.count > 1 else loss.what
