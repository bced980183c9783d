"""`turnlog usage blocks`: usage in windows of five hours, and the limits that agents reported."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.catalog.ask.blocks import blocks
from turnlog.cli.draw.spending import block_table, csv_lines, tell_more, unpriced_notes
from turnlog.cli.draw.text import clock_times
from turnlog.cli.fields.spending import json_block, json_limit, json_spending
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.terminal import screen_rows
from turnlog.cli.pick.catalog import note_pending
from turnlog.reader.agents.limit import AgentLimit, current_limits
from turnlog.view.number import count
from turnlog.view.time import ago
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from turnlog.catalog import Catalog

_FLOOR = 10


def print_blocks(catalog: Catalog, query: str, *, limit: int | None, as_csv: bool, as_json: bool) -> None:
    """Print windows of five hours with the rate of each, then the limits that agents reported."""
    spent = catalog.ask(blocks, query=query)
    now = time.time()
    left = current_limits(catalog, now)
    total = catalog.usage(query)[-1]
    note_pending(catalog, consequence="the sums are of these")
    if limit is None and not as_csv and not as_json:
        limit = screen_rows(below=6, least=_FLOOR)
    newest = spent[-limit:] if limit else spent
    if as_json:
        groups = [json_block(block) for block in newest]
        print_json({"by": "block", "groups": groups, "total": json_spending(total), "gone": catalog.gone(),
                    "limits": [json_limit(one) for one in left]})  # fmt: skip
        return
    if as_csv:
        rows = [(json_block(block)["names"], block.spending) for block in newest]
        print("\n".join(csv_lines(["start", "agent"], rows)))
        return
    if not spent:
        tell(f"nothing was spent{f' for {query}' if query else ''}")
        return
    sys.stdout.write("\n".join(block_table(newest)) + "\n")
    if len(newest) < len(spent) and sys.stdout.isatty():
        tell_more(len(spent) - len(newest), is_time=True)
    for line in _limit_lines(left, now):
        print(line)
    for note in unpriced_notes(total):
        tell(note)


def _limit_lines(left: list[AgentLimit], now: float) -> Iterator[str]:
    if left:
        yield ""
    for one in left:
        again = "" if one.resets_s is None else f", resets {clock_times([int(one.resets_s * 1000)])[0]}"
        age = ago(int(one.said_s * 1000), now)
        yield one_line(f"{one.agent} said {age}: {100 - one.used_percent:.0f}% of {_length(one.minutes)} left{again}")


def _length(minutes: int) -> str:
    """Return the length of a window in words, in the largest unit that it has one of."""
    for unit_minutes, unit in ((1440, "day"), (60, "hour")):
        if minutes >= unit_minutes:
            return count(round(minutes / unit_minutes), unit)
    return count(minutes, "minute")
