"""What was spent in windows of five hours by each agent, as limits of subscriptions count it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnlog.catalog.answer import UsageBlock
from turnlog.catalog.ask.filters import of_model, of_spending, span_of
from turnlog.catalog.ask.listing import now_ms as _now_ms
from turnlog.catalog.ask.lookup import session_condition
from turnlog.catalog.ask.owner import UNKNOWN
from turnlog.catalog.ask.query import parse
from turnlog.catalog.ask.usage import SessionKey, Sum

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index

HOUR_MS = 3_600_000
BLOCK_MS = 5 * HOUR_MS


class _Open:
    """A window that is being filled."""

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
    """The windows in which something was spent, oldest first: for `Catalog.ask`.

    A window begins with the full hour of its first request. The next one begins after its end, or after five hours
    without a request. `since:` and `until:` select whole windows.
    """
    parsed, now = of_spending(parse(query)), _now_ms() if now_ms is None else now_ms
    span = span_of(parsed, now_ms=now)
    requests: list[tuple[int, SessionKey, str, str, list[int]]] = []
    for number, index in enumerate(indexes):
        sessions = session_condition(index, parsed, now_ms=now, without=("model", "since", "until"))
        agents = index.column_by_session("agent")
        for at, session, model, *numbers in index.requests(sessions, of_model(parsed, "model")):
            requests.append((at, (number, session), agents.get(session, UNKNOWN), model, numbers))
    if len(indexes) > 1:
        requests.sort(key=lambda request: request[0])
    blocks: list[_Open] = []
    open_by_agent: dict[str, _Open] = {}
    for at, session, agent, model, numbers in requests:
        block = open_by_agent.get(agent)
        if block is None or not block.has(at):
            block = open_by_agent[agent] = _Open(agent, at)
            blocks.append(block)
        block.last = at
        block.sum.add(session, model, numbers)
    if span.since is not None:
        blocks = [block for block in blocks if block.start + BLOCK_MS > span.since]
    if span.until is not None:
        blocks = [block for block in blocks if block.start < span.until]
    return [block.as_block(now) for block in blocks]
