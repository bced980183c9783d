"""Windows of five hours, and what agents said is left of theirs, as `turnlog usage blocks` prints them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnlog.catalog.ask.blocks import blocks
from turnlog.cli.draw.spending import block_table, csv_lines, json_block, json_spending, tell_more, unpriced_notes
from turnlog.cli.draw.text import ago, clock_times, one_line, tell
from turnlog.cli.frame.answer import print_json
from turnlog.cli.pick.catalog import tell_pending
from turnlog.reader.limit import AgentLimit, limits

if TYPE_CHECKING:
    from turnlog.catalog import Catalog

_FLOOR = 10


def print_blocks(asked: Catalog, query: str, *, limit: int | None, as_csv: bool, as_json: bool) -> None:
    """All of it."""
    spent = asked.ask(blocks, query=query)
    now = time.time()
    left = limits(asked, now)
    total = asked.usage(query)[-1]
    tell_pending(asked, so="the sums are of these")
    if limit is None and sys.stdout.isatty() and not as_csv and not as_json:
        limit = max(_FLOOR, os.get_terminal_size(sys.stdout.fileno()).lines - 6)
    newest = spent[-limit:] if limit else spent
    if as_json:
        groups = [json_block(block) for block in newest]
        print_json({"by": "block", "groups": groups, "total": json_spending(total), "gone": asked.gone(),
                    "limits": [_for_programs(one) for one in left]})  # fmt: skip
        return
    if as_csv:
        rows = [(json_block(block)["names"], block.spending) for block in newest]
        print("\n".join(csv_lines(["start", "agent"], rows)))
        return
    if not spent:
        print(one_line(f"nothing was spent{f' for {query}' if query else ''}"), file=sys.stderr)
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
        window = f"{one.minutes // 1440} days" if one.minutes >= 1440 else f"{one.minutes // 60} hours"
        again = "" if one.resets_s is None else f", resets {clock_times([int(one.resets_s * 1000)])[0]}"
        age = ago(int(one.said_s * 1000), now)
        yield one_line(f"{one.agent} said {age}: {100 - one.used_percent:.0f}% of {window} left{again}")


def _for_programs(one: AgentLimit) -> dict[str, Any]:
    return {
        "agent": one.agent,
        "window_minutes": one.minutes,
        "used_percent": one.used_percent,
        "said_at": datetime.fromtimestamp(one.said_s, UTC),
        "resets_at": None if one.resets_s is None else datetime.fromtimestamp(one.resets_s, UTC),
    }
