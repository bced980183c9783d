"""The usage of sessions as a table: tokens in full, and dollars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnlog.catalog.ask.query import Filter
from turnlog.catalog.ask.usage import PERIODS
from turnlog.mcp.page import SEARCH_BYTES, fitted, result
from turnlog.view.number import dollars

if TYPE_CHECKING:
    from turnlog.catalog.answer import Spending
    from turnlog.mcp.library import Library

_HEADS = ("", "sessions", "requests", "input", "cache read", "cache write", "output", "cost")


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    by, since = arguments.get("by", "day"), arguments.get("since")
    more = [Filter("since", (since,))] if since else []
    *groups, total = library.catalog.usage(library.scope.narrowed("", *more), by=by)
    spent = [row for row in groups if any(row.tokens) or row.unpriced]
    rows = [_row(library, row) for row in (reversed(spent) if by in PERIODS else spent)]
    notes = library.notes()
    if total.unpriced:
        notes.append(f"No price is known for {', '.join(name or '(no model)' for name in total.unpriced[:5])}.")

    def make(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        left = len(spent) - len(rows)
        foot = [f"{left:,} more rows are left out: a later since, or by month"] if left else []
        data: dict[str, Any] = {"by": by, "groups": list(rows), "total": _row(library, total), "left": left}
        table = _table(by, [*rows, {**_row(library, total), "group": "total, at API prices"}])
        return result("\n".join([*table, *foot, *notes]), {**data, "notes": notes} if notes else data)

    return fitted(rows, make, SEARCH_BYTES)


def _row(library: Library, row: Spending) -> dict[str, Any]:
    tokens = row.tokens
    return {
        "group": library.quotes.line(row.group),
        "sessions": row.sessions,
        "requests": row.requests,
        "input": tokens.input_tokens,
        "cache_read": tokens.cache_read_tokens,
        "cache_write": tokens.cache_write_tokens + tokens.cache_write_1h_tokens,
        "output": tokens.output_tokens,
        "cost": dollars(tokens.cost_micros, is_partial=bool(row.unpriced)),
    }


def _table(by: str, rows: list[dict[str, Any]]) -> list[str]:
    lines = [(by, *_HEADS[1:]), *(tuple(map(str, row.values())) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS))]
    return [
        "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
