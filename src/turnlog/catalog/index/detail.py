"""Queries for details of one session, and for tools in several: see `turnlog.catalog.ask.detail`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.batch import BEYOND
from turnlog.catalog.index.where import where
from turnlog.catalog.values import TokenSums

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnlog.catalog.index.conditions import Condition
    from turnlog.catalog.index.engine import Engine

_READ = " + ".join(TokenSums._fields[:4])
"""The size of the context of a request, in tokens."""


def session_ids(db: Engine, sessions: Condition) -> list[int]:
    """The rows of these sessions."""
    sql, values = where(db, sessions)
    return [row[0] for row in db.rows(f"SELECT id FROM {db.table('sessions')} WHERE {sql} ORDER BY id", values)]


def tool_sums(db: Engine, sessions: Condition) -> Iterable[tuple[Any, ...]]:
    """Name, calls, errors and milliseconds of each tool that these sessions used. See `keeps_details`."""
    chosen, values = where(db, sessions)
    return db.rows(
        f"SELECT tool, {db.total('calls')}, {db.total('errors')}, {db.total('took')} FROM used WHERE session IN "
        f"(SELECT sessions.id FROM {db.table('sessions')} WHERE {chosen}) GROUP BY tool",
        values,
    )


def touched_paths(db: Engine, session: int) -> Iterable[tuple[Any, ...]]:
    """The files that tools were called with: path, number of calls, last step; most often named first."""
    return db.rows(
        f"SELECT paths.path, count(*), max(docs.step) FROM {db.table('docs')} "
        f"JOIN {db.table('touched')} ON touched.doc = docs.id JOIN {db.table('paths')} ON paths.id = touched.path "
        f"WHERE docs.session = {db.placeholder} GROUP BY paths.path ORDER BY 2 DESC, 1",
        (session,),
    )


def costs_by_step(db: Engine, session: int, first: int, last: int | None) -> Iterable[tuple[Any, ...]]:
    """Step and cost of what a session spent itself between two steps, without totals of the whole session."""
    until = BEYOND - 1 if last is None else min(last, BEYOND - 1)
    return db.rows(
        f"SELECT step, cost FROM {db.table('spent')} WHERE session = {db.placeholder} AND NOT is_inherited "
        f"AND cost IS NOT NULL AND step >= {int(first)} AND step <= {int(until)} ORDER BY step",
        (session,),
    )


def most_read(db: Engine, session: int) -> int:
    """The largest context of a request of this session, in tokens."""
    sql = f"SELECT max({_READ}) FROM {db.table('spent')} WHERE session = {db.placeholder} AND NOT is_total"
    return next(iter(db.rows(sql, (session,))))[0] or 0


def compacted_at(db: Engine, session: int) -> Iterable[tuple[Any, ...]]:
    """The compactions of a session: step and time."""
    docs, placeholder = db.table("docs"), db.placeholder
    sql = f"SELECT step, {db.at} FROM {docs} WHERE session = {placeholder} AND role = {placeholder} ORDER BY step"
    return db.rows(sql, (session, "summary"))


def tokens_read(db: Engine, session: int) -> list[tuple[int, int]]:
    """The requests of a session: step and size of the context in tokens."""
    spent = f"{db.table('spent')} WHERE session = {db.placeholder} AND NOT is_total"
    return sorted(db.rows(f"SELECT step, {_READ} FROM {spent}", (session,)))


def requests_at(db: Engine, session: int, steps: list[int]) -> Iterable[tuple[Any, ...]]:
    """Some requests of a session: step, time, model."""
    spent = f"{db.table('spent')} WHERE session = {db.placeholder} AND NOT is_total"
    return db.rows(f"SELECT step, at, model FROM {spent} AND {db.among_numbers('step')}", (session, steps))
