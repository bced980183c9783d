"""What was spent in JSON: by group, in windows of five hours, and what agents say of their limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnlog.cli.fields.session import TOKENS, json_tokens
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.encoding import utc

if TYPE_CHECKING:
    from turnlog.catalog.answer import Spending, UsageBlock
    from turnlog.reader.agents.limit import AgentLimit

SPENDING_GROUP = {
    "group": shape.text(),
    "names": shape.texts("the names of the group, one for each of `by`"),
    **TOKENS,
    "requests": shape.number(),
    "sessions": shape.number(),
    "unpriced": shape.texts("models without a known price"),
}
BLOCK = {
    "agent": shape.text(),
    "start": shape.time(),
    "end": shape.time(),
    "first": shape.time("the first request"),
    "last": shape.time("the last request"),
    "is_active": shape.flag("whether the window is still open"),
    "tokens_per_minute": shape.number("from the first request to the last", null=True),
    "cost_micros_per_hour": shape.number("the same in micro-dollars", null=True),
}


def json_spending(row: Spending) -> dict[str, Any]:
    """Return the fields of `SPENDING_GROUP`."""
    return {
        "group": row.group,
        "names": list(row.names),
        **json_tokens(row.tokens),
        "requests": row.requests,
        "sessions": row.sessions,
        "unpriced": list(row.unpriced),
    }


def json_block(block: UsageBlock) -> dict[str, Any]:
    """Return a window of five hours: its spending, and the fields of `BLOCK`."""
    start = utc(block.start_ms)
    return {
        **json_spending(block.spending),
        "group": start,
        "names": [start, block.agent],
        "block": {
            "agent": block.agent,
            "start": start,
            "end": utc(block.end_ms),
            "first": utc(block.first_ms),
            "last": utc(block.last_ms),
            "is_active": block.is_active,
            "tokens_per_minute": block.tokens_per_minute,
            "cost_micros_per_hour": block.micros_per_hour,
        },
    }


def json_limit(limit: AgentLimit) -> dict[str, Any]:
    """Return what an agent said of a limit."""
    return {
        "agent": limit.agent,
        "window_minutes": limit.minutes,
        "used_percent": limit.used_percent,
        "said_at": datetime.fromtimestamp(limit.said_s, UTC),
        "resets_at": None if limit.resets_s is None else datetime.fromtimestamp(limit.resets_s, UTC),
    }
