"""What is known of one session in detail, or of tools in all of them: for `Catalog.ask`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.answer import ContextPoint, ToolUse, TouchedPath
from turnlog.catalog.ask.listing import now_ms, sessions_shown
from turnlog.catalog.ask.query import parse
from turnlog.catalog.ask.search import sessions_meant
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.texts import path_of
from turnlog.catalog.index.where import where
from turnlog.catalog.values import TokenSums, rounded
from turnlog.thread.outline import Outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.catalog.index.index import Index
    from turnlog.catalog.values import Card

_MOST = 400


def outline(indexes: Sequence[Index], session: str) -> Outline:
    """The outline of a session of ours, by its id, as far as the index has it; what is missing is at its end."""
    from turnlog.catalog.index.outlines import outline_in

    for index in indexes:
        for row in _ids(index, Condition("=", "sessions.native", session).and_(Condition("is", "sessions.is_ours"))):
            return outline_in(index.engine, row)
    return Outline()


def tools(indexes: Sequence[Index], card: Card | None = None, *, query: str = "") -> list[ToolUse]:
    """What tools did in a session, or in all that a query describes: the most used first."""
    sums: dict[str, list[int]] = {}
    for index in indexes:
        if not index.engine.keeps_details:
            continue
        meant = _is(card) if card is not None else sessions_meant(index, parse(query), now_ms=now_ms())
        chosen, values = where(index.engine, meant)
        rows = index.engine.rows(
            "SELECT tool, sum(calls), sum(errors), sum(took) FROM used WHERE session IN "
            f"(SELECT sessions.id FROM {index.engine.table('sessions')} WHERE {chosen}) GROUP BY tool",
            values,
        )
        for name, *numbers in rows:
            sums[name] = [one + int(more) for one, more in zip(sums.get(name, [0, 0, 0]), numbers, strict=True)]
    tools = [ToolUse(name, *numbers) for name, numbers in sums.items()]
    return sorted(tools, key=lambda one: (-one.calls, one.tool))


def how_many(indexes: Sequence[Index], query: str) -> int:
    """How many sessions a list for that query has."""
    return sum(index.count(sessions_shown(index, query, None, everything=False, deleted=False)) for index in indexes)


def context(indexes: Sequence[Index], card: Card, *, most: int = _MOST) -> list[ContextPoint]:
    """How full the context was with each request, oldest first; of many, the fullest of neighbours, and compactions."""
    for index in indexes:
        for row in _ids(index, _is(card)):
            return [point._replace(seq=point.seq + _shift(card)) for point in _points(index, row, most)]
    return []


def files(indexes: Sequence[Index], card: Card) -> list[TouchedPath]:
    """The files that its tools were called with, the most often named first."""
    for index in indexes:
        for row in _ids(index, _is(card)):
            table, mark = index.engine.table, index.engine.mark
            rows = index.engine.rows(
                f"SELECT paths.path, count(*), max(docs.step) FROM {table('docs')} "
                f"JOIN {table('touched')} ON touched.doc = docs.id JOIN {table('paths')} ON paths.id = touched.path "
                f"WHERE docs.session = {mark} GROUP BY paths.path ORDER BY 2 DESC, 1",
                (row,),
            )
            return [TouchedPath(path, times, step + _shift(card)) for path, times, step in rows]
    return []


def spent_by_entry(
    indexes: Sequence[Index], card: Card, *, first: int = 0, last: int | None = None
) -> list[tuple[int, int]]:
    """What a session spent itself, in micro-dollars, by the number of the entry; oldest first, `first` to `last`."""
    shift = _shift(card)
    for index in indexes:
        for row in _ids(index, _is(card)):
            sql = (
                f"SELECT step, cost FROM {index.engine.table('spent')} "
                f"WHERE session = {index.engine.mark} AND NOT is_inherited AND cost IS NOT NULL "
                f"AND step >= {int(first) - shift}"
                f"{'' if last is None else f' AND step <= {int(last) - shift}'} ORDER BY step"
            )
            return [(step + shift, rounded(int(cost))) for step, cost in index.engine.rows(sql, (row,))]
    return []


def fullest(indexes: Sequence[Index], card: Card) -> int:
    """The most tokens that one request of a session was given to read."""
    counts = " + ".join(TokenSums._fields[:4])
    for index in indexes:
        for row in _ids(index, _is(card)):
            table, mark = index.engine.table("spent"), index.engine.mark
            sql = f"SELECT max({counts}) FROM {table} WHERE session = {mark} AND NOT is_total"
            return next(iter(index.engine.rows(sql, (row,))))[0] or 0
    return 0


def _is(card: Card) -> Condition:
    if card.is_ours:
        return Condition("=", "sessions.native", card.id).and_(Condition("is", "sessions.is_ours"))
    return Condition("=", "sessions.name", card.name).and_(Condition("not", "sessions.is_ours"))


def _shift(card: Card) -> int:
    """From the step of an index to the number of an entry: another agent's records are counted from 0 there."""
    return 0 if card.is_ours else 1


def _ids(index: Index, sessions: Condition) -> list[int]:
    sql, values = where(index.engine, sessions)
    rows = index.engine.rows(f"SELECT id FROM {index.engine.table('sessions')} WHERE {sql} ORDER BY id", values)
    return [row[0] for row in rows]


def _points(index: Index, row: int, most: int) -> list[ContextPoint]:
    table, mark = index.engine.table, index.engine.mark
    compacted = (
        f"SELECT step, {index.engine.at} FROM {table('docs')} WHERE session = {mark} AND role = {mark} ORDER BY step"
    )
    compactions = [
        ContextPoint(step, at, "", 0, is_compaction=True) for step, at in index.engine.rows(compacted, (row, "summary"))
    ]
    counts = " + ".join(TokenSums._fields[:4])
    spent = f"{table('spent')} WHERE session = {mark} AND NOT is_total"
    requests: list[tuple[int, int]] = sorted(index.engine.rows(f"SELECT step, {counts} FROM {spent}", (row,)))
    requests = [request for request in requests if request[1]]
    if len(requests) + len(compactions) > most:
        compactions = compactions[-most // 4 :]
        requests = _fullest(requests, most - len(compactions))
    tokens = dict(requests)
    query = f"SELECT step, at, model FROM {spent} AND {index.engine.among('step')}"
    points = {step: ContextPoint(step, at, model, tokens[step]) for step, at, model in
             index.engine.rows(query, (row, list(tokens)))}  # fmt: skip
    return sorted([*points.values(), *compactions])


def _fullest(requests: list[tuple[int, int]], room: int) -> list[tuple[int, int]]:
    """At most this many of them: of neighbours, the fullest."""
    size = len(requests)
    parts = (requests[number * size // room : (number + 1) * size // room] for number in range(min(room, size)))
    return [max(part, key=lambda request: request[1]) for part in parts]


def known_values(indexes: Sequence[Index], name: str) -> list[str]:
    """What sessions have that a filter could ask for, in small letters: agents, models, tags, folders, branches."""
    columns = {"agent": "agent", "model": "models", "tag": "tags", "workspace": "workspace", "branch": "git_branches"}
    values: set[str] = set()
    for index in indexes:
        for value in set(index.labels(columns[name]).values()):
            parts = [part.rstrip("/").lower() for part in path_of(value).split("\n") if part]
            values.update(part.rpartition("/")[2] for part in parts)
            values.update(parts if name == "branch" else ())
    if name == "agent":
        from turnlog.formats import names

        values.update(names())
    return sorted(values)
