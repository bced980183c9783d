"""Filters as conditions over the tables of a shelf. Pure.

The SQL is SQLite's, and so little of it that PostgreSQL has the same. `LIKE` takes upper and lower case for
the same; `REGEXP` is for what it cannot tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from turnlog.catalog.ask.query import STATES, Filter, Query, cost_of, moment

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {
    "damaged": "(sessions.damage > 0 OR sessions.problem <> '')",
    "fork": "sessions.fork IS NOT NULL",
    "subagent": "sessions.parent IS NOT NULL",
    "imported": "(sessions.is_ours AND sessions.copy_of IS NOT NULL)",
    "archived": "sessions.is_archived",
    "hidden": "sessions.is_hidden",
}
_LIKE = r" LIKE ? ESCAPE '\'"
_OF_ENTRIES = ("role", "tool", "file")
_OF_TIME = ("since", "until")

Value = str | int
States = Callable[[frozenset[str]], Iterable[int]]
"""The sessions that are in one of these states now."""


class Clause(NamedTuple):
    """A condition; empty where nothing was asked."""

    sql: str = ""
    values: tuple[Value, ...] = ()

    def and_(self, other: Clause) -> Clause:
        """Both."""
        return Clause(" AND ".join(filter(None, (self.sql, other.sql))), self.values + other.values)

    def or_(self, other: Clause) -> Clause:
        """Either. Nothing asked is no alternative."""
        if not self.sql or not other.sql:
            return self if self.sql else other
        return Clause(f"({self.sql} OR {other.sql})", self.values + other.values)

    def but_not(self, other: Clause) -> Clause:
        """This, and not that. What is not known is not so."""
        return self.and_(Clause(f"({other.sql}) IS NOT TRUE", other.values)) if other.sql else self


class TimeSpan(NamedTuple):
    """From a moment on, and before another; milliseconds since 1970, None for no limit."""

    since: int | None = None
    until: int | None = None


def span_of(query: Query, *, now_ms: int, zone: tzinfo | None = None) -> TimeSpan:
    """What `since:` and `until:` mean now."""
    since: list[int] = []
    until: list[int] = []
    now = _EPOCH + timedelta(milliseconds=now_ms)
    for found in query.filters:
        if found.name in _OF_TIME:
            is_until = found.name == "until"
            at = moment(found.values[0], now=now, zone=zone, is_end=is_until)
            (until if is_until != found.negated else since).append(-((_EPOCH - at) // timedelta(milliseconds=1)))
    return TimeSpan(max(since, default=None), min(until, default=None))


def is_of_entries(query: Query) -> bool:
    """Whether the answer is in what was said, and not only in what is known of sessions."""
    return bool(query.terms) or any(found.name in _OF_ENTRIES and not found.negated for found in query.filters)


def of_sessions(query: Query, states: States, *, without: tuple[str, ...] = ()) -> Clause:
    """What the table `sessions` can tell."""
    clause = Clause()
    for found in query.filters:
        if found.name not in (*_OF_ENTRIES, *_OF_TIME, *without):
            clause = _with(clause, found, _of_session(found, states))
    return clause


def of_entries(query: Query, *, negated: bool | None = None) -> Clause:
    """What the table `docs` can tell; all of it, or only what has to be, or what must not be, as if it had to be."""
    clause = Clause()
    for found in query.filters:
        if found.name in _OF_ENTRIES:
            if negated is None:
                clause = _with(clause, found, _of_entry(found))
            elif negated == found.negated:
                clause = clause.or_(_of_entry(found)) if negated else clause.and_(_of_entry(found))
    return clause


def of_model(query: Query, column: str) -> Clause:
    """What `model:` says of a column with one model."""
    clause = Clause()
    for found in query.filters:
        if found.name == "model":
            clause = _with(clause, found, _any(_like(column, value, ("*", "*")) for value in found.values))
    return clause


def _with(clause: Clause, found: Filter, condition: Clause) -> Clause:
    return clause.but_not(condition) if found.negated else clause.and_(condition)


def _any(clauses: Iterable[Clause]) -> Clause:
    whole = Clause()
    for clause in clauses:
        whole = whole.or_(clause)
    return whole


def _of_session(found: Filter, states: States) -> Clause:
    values = found.values
    match found.name:
        case "agent":
            ends = ("", "-*", "_*", " *")
            return _any(_like("sessions.agent", value, *(("", end) for end in ends)) for value in values)
        case "workspace":
            return _any(_workspace(value) for value in values)
        case "model":
            return _any(_like("sessions.models", value, ("*", "*")) for value in values)
        case "title":
            shown = "coalesce(nullif(sessions.title, ''), sessions.preview)"
            return _any(_like(shown, value, ("*", "*")) for value in values)
        case "tag":
            return _any(_listed("sessions.tags", value) for value in values)
        case "session":
            return _any(
                _like(column, value, ("", "*")) for value in values for column in ("sessions.name", "sessions.native")
            )
        case "cost":
            sign, micros = cost_of(values[0])
            return Clause(f"sessions.cost {sign} ?", (micros,))
        case _:
            kinds = _any(Clause(_KINDS[value]) for value in values if value in _KINDS)
            wanted = frozenset(values).intersection(STATES)
            if not wanted:
                return kinds
            return kinds.or_(Clause(f"sessions.id IN ({', '.join(['NULL', *map(str, states(wanted))])})"))


def _of_entry(found: Filter) -> Clause:
    if found.name == "role":
        return Clause(f"docs.role IN ({', '.join('?' * len(found.values))})", found.values)
    if found.name == "tool":
        return _any(_listed("docs.tool", value) for value in found.values)
    inside = _any(_file(value) for value in found.values)
    paths = f"SELECT paths.id FROM paths WHERE {inside.sql}"
    return Clause(f"docs.id IN (SELECT touched.doc FROM touched WHERE touched.path IN ({paths}))", inside.values)


def _workspace(value: str) -> Clause:
    if value[0] in "~./":
        from turnlog.machine.folder import expand, workspace_path

        path = workspace_path(expand(value))
        # The folder itself, wherever links lead, and what is below it.
        return _like("sessions.workspace", path, ("", ""), ("", "/*"), is_glob=False)
    name = value.strip("/") or value
    return _like("sessions.workspace", name, ("", ""), ("*/", ""))


def _file(value: str) -> Clause:
    if value.startswith("~"):
        from turnlog.machine.folder import expand

        value = expand(value)
    path = value.removeprefix("./") or value
    after = "*" if path.endswith("/") else ""
    ends = [("", after)] if path.startswith("/") else [("", after), ("*/", after)]
    return _like("paths.path", path, *ends)


# ── patterns ──────────────────────────────────────────────────────────────────────────────────────


def _like(column: str, value: str, *around: tuple[str, str], is_glob: bool = True) -> Clause:
    """Whether a column reads like one of these: the value with that before and after it. `*` is anything, `?` one."""
    if not value.isascii():
        middle = _regex(value) if is_glob else re.escape(value)
        body = "|".join(_regex(before) + middle + _regex(after) for before, after in around)
        return Clause(f"{column} REGEXP ?", (f"^({body})$",))
    middle = _escaped(value)
    if is_glob:
        middle = middle.replace("*", "%").replace("?", "_")
    patterns = tuple(
        _escaped(before).replace("*", "%") + middle + _escaped(after).replace("*", "%") for before, after in around
    )
    return Clause(f"({' OR '.join([column + _LIKE] * len(patterns))})", patterns)


def _listed(column: str, value: str) -> Clause:
    """Whether a column with several values, each between line feeds, has one that reads like this."""
    if "*" in value or not value.isascii():
        return Clause(f"{column} REGEXP ?", ("\n" + _regex(value, any="[^\n]*") + "\n",))
    return _like(column, "\n" + value + "\n", ("*", "*"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _regex(text: str, any: str = ".*") -> str:
    return "".join(any if one == "*" else "." if one == "?" else re.escape(one) for one in text)


def regexp(pattern: str, value: object) -> bool:
    """For a database that has no `REGEXP` of its own."""
    return isinstance(value, str) and re.search(pattern, value, re.IGNORECASE | re.DOTALL) is not None
