"""Conditions on sessions and entries: values that each engine translates into its SQL."""

from __future__ import annotations

from typing import Any

from turnlog.log.startup import NamedTuple


class Condition(NamedTuple):
    """A condition; without an `op` it is empty, and always holds.

    `op` is a comparison of a column with the value (`=`, `<>`, `<`, `<=`, `>`, `>=`), or one of these: `is`, `not` (the
    column is a flag), `known`, `unknown` (null), `in` (a few values), `among` (any number of rows), `like` (one of
    several patterns; upper and lower case are the same), `begins` (with the value; case matters), `regexp`, `touches`
    (an entry with a file for which the value, a condition, holds), `has` (a session with an entry that the value, a
    lookup, finds); `and`, `or`, `but not`, whose values are conditions.
    """

    op: str = ""
    column: str = ""
    value: Any = None

    def and_(self, other: Condition) -> Condition:
        """Both conditions."""
        return self._with("and", other)

    def or_(self, other: Condition) -> Condition:
        """Either condition. An empty one is no alternative."""
        return self._with("or", other)

    def but_not(self, other: Condition) -> Condition:
        """This condition and not `other`; NULL counts as false."""
        return self.and_(Condition("but not", value=other)) if other.op else self

    def _with(self, op: str, other: Condition) -> Condition:
        if not self.op or not other.op:
            return self if self.op else other
        return Condition(op, value=(*(self.value if self.op == op else (self,)), other))


def either(*conditions: Condition) -> Condition:
    """At least one of the conditions."""
    whole = Condition()
    for condition in conditions:
        whole = whole.or_(condition)
    return whole


class Clause(NamedTuple):
    """A condition in SQL; the text is empty if the condition is."""

    sql: str = ""
    values: tuple[Any, ...] = ()
