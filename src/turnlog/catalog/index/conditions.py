"""Conditions on sessions and entries: values, which each engine says in its own words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from turnlog.catalog.index.contract import Words

_EXPRESSIONS = {
    "sessions.shown": "coalesce(nullif(sessions.title, ''), sessions.preview)",
    "sessions.began": "coalesce(sessions.created, sessions.updated)",
}
"""Columns that no table has."""


class Condition(NamedTuple):
    """What has to hold; without an `op`, nothing was asked.

    `op` is a comparison of a column with the value, or one of these: `is`, `not` (a flag), `known`, `unknown` (null),
    `in` (a few values), `among` (any number of rows), `like` (one of several patterns, upper and lower case are the
    same), `regexp`, `touches` (an entry whose files are so), `has` (a session with entries that are wanted); `and`,
    `or`, `but not`, with conditions for values.
    """

    op: str = ""
    column: str = ""
    value: Any = None

    def and_(self, other: Condition) -> Condition:
        """Both."""
        return self._with("and", other)

    def or_(self, other: Condition) -> Condition:
        """Either. Nothing asked is no alternative."""
        return self._with("or", other)

    def but_not(self, other: Condition) -> Condition:
        """This, and not that. What is not known is not so."""
        return self.and_(Condition("but not", value=other)) if other.op else self

    def _with(self, op: str, other: Condition) -> Condition:
        if not self.op or not other.op:
            return self if self.op else other
        return Condition(op, value=(*(self.value if self.op == op else (self,)), other))


ANY = Condition()
"""Nothing is asked."""


def either(*conditions: Condition) -> Condition:
    """At least one of them."""
    whole = Condition()
    for condition in conditions:
        whole = whole.or_(condition)
    return whole


class Clause(NamedTuple):
    """A condition in SQL; empty where nothing was asked."""

    sql: str = ""
    values: tuple[Any, ...] = ()


def clause(words: Words, condition: Condition) -> Clause:
    """A condition in the words of an engine."""
    op, column, value = condition
    column, mark = _EXPRESSIONS.get(column, column), words.mark
    match op:
        case "":
            return Clause()
        case "and" | "or":
            parts = [clause(words, one) for one in value]
            sql = f" {op.upper()} ".join(part.sql for part in parts)
            return Clause(sql if op == "and" else f"({sql})", tuple(given for part in parts for given in part.values))
        case "but not":
            sql, values = clause(words, value)
            return Clause(f"({sql}) IS NOT TRUE", values)
        case "is":
            return Clause(column)
        case "not":
            return Clause(f"NOT {column}")
        case "known" | "unknown":
            return Clause(f"{column} IS {'NOT ' if op == 'known' else ''}NULL")
        case "in":
            return Clause(f"{column} IN ({', '.join([mark] * len(value))})", tuple(value))
        case "among":
            return Clause(f"{column} IN ({', '.join(['NULL', *map(str, value)])})")
        case "like":
            one = f"{column} {words.like} {mark} ESCAPE '\\'"
            return Clause(f"({' OR '.join([one] * len(value))})", tuple(value))
        case "regexp":
            return Clause(f"{column} {words.regexp} {mark}", (value,))
        case "touches":
            sql, values = clause(words, value)
            paths = f"SELECT paths.id FROM {words.table('paths')} WHERE {sql}"
            inside = f"SELECT touched.doc FROM {words.table('touched')} WHERE touched.path IN ({paths})"
            return Clause(f"docs.id IN ({inside})", values)
        case "has":
            return words.having(value)
        case _:
            return Clause(f"{column} {op} {mark}", (value,))


def where(words: Words, *conditions: Condition) -> Clause:
    """All of them; what was not asked is always true."""
    whole = Condition()
    for condition in conditions:
        whole = whole.and_(condition)
    return clause(words, whole) if whole.op else Clause("TRUE")
