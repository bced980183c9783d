"""What was spent, `/usage`: bars per day, and tables whose numbers are those of `turnlog usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from turnlog.catalog.ask.usage import PERIODS, usage_by_two
from turnlog.errors import Invalid
from turnlog.view.number import count, dollars, tokens
from turnlog.web.chart import COLOURS, bars, key
from turnlog.web.element import esc, link, table
from turnlog.web.frame import page, standing_note
from turnlog.web.sessionrow import unpriced
from turnlog.web.viewer import viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.catalog.answer import Spending

_BY = ("model", "agent", "workspace", "session", *PERIODS)
_STACKS = ("model", "agent", "workspace")
_SINCE = (("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days"), ("", "All"))
_ROWS = 100


def show(request: Request) -> Response:
    """The page about what was spent."""
    viewer = viewer_of(request)
    by = request.query_params.get("by", "model")
    since = request.query_params.get("since", "30d").strip()
    if by not in _BY:
        raise Invalid(f"no usage by {by!r:.40}", hint=f"by {', '.join(_BY)}")
    if since and not since.replace("-", "").replace(":", "").isalnum():
        raise Invalid(f"no time {since!r:.40}", hint="7d, today, 2026-11")
    query = f"since:{since}" if since else ""
    *rows, total = viewer.catalog.usage(query, by=by)
    rows = [row for row in rows if any(row.tokens) or row.unpriced]
    stack = by if by in _STACKS else "model"
    days = viewer.catalog.ask(usage_by_two, "day", stack, query=query)
    body = (
        f"<h1>Usage</h1>{standing_note(viewer)}{_choices(by, since)}"
        f'<p data-testid="usage-total" class="facts">{_total(total)}</p>{unpriced(total.unpriced)}'
        f"{_chart(days, stack) if days else ''}"
        f"{_table(by, rows, total) if rows else '<p data-testid=empty>Nothing was spent in that time.</p>'}"
    )
    return page(request, "Usage · turnlog", body, here="/usage", kind="usage")


def _address(by: str, since: str) -> str:
    return f"/usage?{urlencode({'by': by, 'since': since})}"


def _choices(by: str, since: str) -> str:
    times = "".join(link(_address(by, word), text, current=word == since) for word, text in _SINCE)
    groups = "".join(link(_address(one, since), one, current=one == by) for one in _BY)
    return f'<nav class="chips" aria-label="Period">{times}</nav><nav class="chips" aria-label="Groups">{groups}</nav>'


def _total(total: Spending) -> str:
    read = total.tokens.all_input_tokens
    cost = dollars(total.tokens.cost_micros, is_partial=bool(total.unpriced))
    spent = f"{cost} · {tokens(read)} tokens in, {tokens(total.tokens.output_tokens)} out"
    return f"{spent} · {count(total.requests, 'request')} · {count(total.sessions, 'session')}"


def _chart(days: dict[str, list[Spending]], stack: str) -> str:
    sums: dict[str, int] = {}
    for parts in days.values():
        for part in parts:
            sums[part.group] = sums.get(part.group, 0) + part.tokens.cost_micros
    names = sorted(sums, key=lambda name: -sums[name])
    listed = names if len(names) <= COLOURS else [*names[: COLOURS - 1], "others"]
    groups: list[list[int]] = []
    for parts in days.values():
        row = [0] * len(listed)
        for part in parts:
            row[listed.index(part.group) if part.group in listed else -1] += part.tokens.cost_micros
        groups.append(row)
    labels = list(days)
    most = dollars(max(map(sum, groups), default=0))
    chart = bars(f"Cost per day by {stack}", groups, most=most, first=labels[0], last=labels[-1])
    rows = [
        (esc(day), *(esc(dollars(value)) if value else "" for value in row), esc(dollars(sum(row))))
        for day, row in zip(labels, groups, strict=True)
    ]
    as_table = table(("Day", *listed, "all"), rows, caption=f"Cost per day by {stack}", right=range(1, len(listed) + 2))
    return f"{chart}{key(listed)}<details><summary>The same as a table</summary>{as_table}</details>"


def _table(by: str, rows: list[Spending], total: Spending) -> str:
    heads = (by.capitalize(), "Cost", "In", "Cached", "Out", "Requests", "Sessions")
    cells = [_cells(row, row.group) for row in (rows[-_ROWS:] if by in PERIODS else rows[:_ROWS])]
    html = table(heads, [*cells, _cells(total, "total")], caption=f"By {by}", right=range(1, 7))
    left_out = len(rows) - len(cells)
    note = f'<p class="note">{left_out:,} more are left out here; the total has all of them.</p>' if left_out else ""
    return html + note


def _cells(row: Spending, name: str) -> tuple[str, ...]:
    spent = row.tokens
    cost = dollars(spent.cost_micros, is_partial=bool(row.unpriced))
    numbers = (spent.all_input_tokens, spent.cache_read_tokens, spent.output_tokens)
    return (
        esc(name or "(none)"), esc(cost), *(f"{number:,}" for number in (*numbers, row.requests, row.sessions)),
    )  # fmt: skip


ROUTES = [Route("/usage", show)]
