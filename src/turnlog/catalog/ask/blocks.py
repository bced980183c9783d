"""What was spent in windows of five hours, agent by agent: as the limits of subscriptions count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnlog.catalog.answer import UsageBlock
from turnlog.catalog.ask.filters import of_model, of_spending, span_of
from turnlog.catalog.ask.listing import now_ms as _now_ms
from turnlog.catalog.ask.query import parse
from turnlog.catalog.ask.search import sessions_meant
from turnlog.catalog.ask.usage import Sum
from turnlog.catalog.ask.whose import UNKNOWN

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index

HOUR_MS = 3_600_000
BLOCK_MS = 5 * HOUR_MS


class _Open:
    """A window, while it is filled."""

    def __init__(self, agent: str, at: int) -> None:
        self.agent = agent
        self.start = at - at % HOUR_MS
        self.first = self.last = at
        self.sum = Sum()

    def has(self, at: int) -> bool:
        return at - self.start <= BLOCK_MS and at - self.last <= BLOCK_MS

    def as_block(self, now: int) -> UsageBlock:
        end = self.start + BLOCK_MS
        is_active = now < end and now - self.last < BLOCK_MS
        return UsageBlock(self.agent, self.start, end, self.first, self.last, is_active, self.sum.as_spending())


def blocks(indexes: Sequence[Index], *, query: str = "", now_ms: int | None = None) -> list[UsageBlock]:
    """The windows in which something was spent, the oldest first: for `Catalog.ask`.

    A window begins with the full hour of its first request, and the next one behind its end, or after five hours
    without any. `since:` and `until:` choose whole windows.
    """
    asked, now = of_spending(parse(query)), _now_ms() if now_ms is None else now_ms
    span = span_of(asked, now_ms=now)
    rows: list[tuple[int, tuple[int, int], str, str, list[int]]] = []
    for number, index in enumerate(indexes):
        sessions = sessions_meant(index, asked, now_ms=now, without=("model", "since", "until"))
        agents = index.labels("agent")
        for at, session, model, *numbers in index.requests(sessions, of_model(asked, "model")):
            rows.append((at, (number, session), agents.get(session, UNKNOWN), model, numbers))
    if len(indexes) > 1:
        rows.sort(key=lambda row: row[0])
    blocks: list[_Open] = []
    going: dict[str, _Open] = {}
    for at, session, agent, model, numbers in rows:
        one = going.get(agent)
        if one is None or not one.has(at):
            one = going[agent] = _Open(agent, at)
            blocks.append(one)
        one.last = at
        one.sum.add(session, model, numbers)
    return [
        one.as_block(now)
        for one in blocks
        if (span.since is None or one.start + BLOCK_MS > span.since) and (span.until is None or one.start < span.until)
    ]
