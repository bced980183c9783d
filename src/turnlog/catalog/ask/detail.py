"""Details of one session, and of tools in all sessions: for `Catalog.ask`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.answer import ContextPoint, ToolUse, TouchedPath
from turnlog.catalog.ask.listing import now_ms, sessions_shown
from turnlog.catalog.ask.lookup import session_condition
from turnlog.catalog.ask.query import parse
from turnlog.catalog.index.columns import path_of
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.detail import (
    compacted_at,
    costs_by_step,
    most_read,
    requests_at,
    session_ids,
    tokens_read,
    tool_sums,
    touched_paths,
)
from turnlog.catalog.values import rounded
from turnlog.thread.outline import Outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.index.index import Index
    from turnlog.catalog.values import Card

_MOST = 400


def outline(indexes: Sequence[Index], session: str) -> Outline:
    """The outline of a session of ours, by its id. If the index is behind, the end is missing."""
    from turnlog.catalog.index.sqlite.outlines import outline_in

    for index in indexes:
        ours = Condition("=", "sessions.native", session).and_(Condition("is", "sessions.is_ours"))
        for row in session_ids(index.engine, ours):
            return outline_in(index.engine, row)
    return Outline()


def tools(indexes: Sequence[Index], card: Card | None = None, *, query: str = "") -> list[ToolUse]:
    """The tools of one session, or of all that match a query, most used first."""
    sums: dict[str, list[int]] = {}
    for index in indexes:
        if not index.engine.keeps_details:
            continue
        sessions = _only(card) if card is not None else session_condition(index, parse(query), now_ms=now_ms())
        for name, *numbers in tool_sums(index.engine, sessions):
            sums[name] = [one + more for one, more in zip(sums.get(name, [0, 0, 0]), numbers, strict=True)]
    tools = [ToolUse(name, *numbers) for name, numbers in sums.items()]
    return sorted(tools, key=lambda one: (-one.calls, one.tool))


def count_listed(indexes: Sequence[Index], query: str) -> int:
    """The number of sessions that a listing of this query has."""
    return sum(index.count(sessions_shown(index, query, None, everything=False, deleted=False)) for index in indexes)


def context(indexes: Sequence[Index], card: Card, *, most: int = _MOST) -> list[ContextPoint]:
    """The context size of each request, and the compactions, oldest first; of many, the largest of neighbours."""
    for index in indexes:
        for row in session_ids(index.engine, _only(card)):
            return [point._replace(seq=point.seq + _shift(card)) for point in _points(index, row, most)]
    return []


def files(indexes: Sequence[Index], card: Card) -> list[TouchedPath]:
    """The files that tools of a session were called with, most often named first."""
    for index in indexes:
        for row in session_ids(index.engine, _only(card)):
            rows = touched_paths(index.engine, row)
            return [TouchedPath(path, times, step + _shift(card)) for path, times, step in rows]
    return []


def spent_by_entry(
    indexes: Sequence[Index], card: Card, *, first: int = 0, last: int | None = None
) -> list[tuple[int, int]]:
    """Micro-dollars that a session spent itself, by number of the entry from `first` to `last`, oldest first."""
    shift = _shift(card)
    for index in indexes:
        for row in session_ids(index.engine, _only(card)):
            costs = costs_by_step(index.engine, row, first - shift, None if last is None else last - shift)
            return [(step + shift, rounded(int(cost))) for step, cost in costs]
    return []


def fullest(indexes: Sequence[Index], card: Card) -> int:
    """The largest context of a request of this session, in tokens."""
    for index in indexes:
        for row in session_ids(index.engine, _only(card)):
            return most_read(index.engine, row)
    return 0


def _only(card: Card) -> Condition:
    if card.is_ours:
        return Condition("=", "sessions.native", card.id).and_(Condition("is", "sessions.is_ours"))
    return Condition("=", "sessions.name", card.name).and_(Condition("not", "sessions.is_ours"))


def _shift(card: Card) -> int:
    """What to add to a step of the index for the number of the entry: other agents' records count from 0 there."""
    return 0 if card.is_ours else 1


def _points(index: Index, row: int, most: int) -> list[ContextPoint]:
    engine = index.engine
    compactions = [ContextPoint(step, at, "", 0, is_compaction=True) for step, at in compacted_at(engine, row)]
    requests = [request for request in tokens_read(engine, row) if request[1]]
    if len(requests) + len(compactions) > most:
        compactions = compactions[-most // 4 :]
        requests = _fullest(requests, most - len(compactions))
    tokens = dict(requests)
    rows = requests_at(engine, row, list(tokens))
    points = {step: ContextPoint(step, at, model, tokens[step]) for step, at, model in rows}
    return sorted([*points.values(), *compactions])


def _fullest(requests: list[tuple[int, int]], room: int) -> list[tuple[int, int]]:
    """Reduce the requests to `room`: of neighbours, the largest."""
    size = len(requests)
    parts = (requests[number * size // room : (number + 1) * size // room] for number in range(min(room, size)))
    return [max(part, key=lambda request: request[1]) for part in parts]


def known_values(indexes: Sequence[Index], name: str) -> list[str]:
    """The values that a filter can match, in lower case: agents, models, tags, folders, branches."""
    columns = {"agent": "agent", "model": "models", "tag": "tags", "workspace": "workspace", "branch": "git_branches"}
    values: set[str] = set()
    for index in indexes:
        for value in set(index.column_by_session(columns[name]).values()):
            parts = [part.rstrip("/").lower() for part in path_of(value).split("\n") if part]
            values.update(part.rpartition("/")[2] for part in parts)
            values.update(parts if name == "branch" else ())
    if name == "agent":
        from turnlog.formats import names

        values.update(names())
    return sorted(values)
