"""Conditions in the SQL of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import COST
from turnlog.catalog.index.conditions import Clause, Condition

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

_EXPRESSIONS = {
    "sessions.all_cost": COST,
    "sessions.shown": "coalesce(nullif(sessions.title, ''), sessions.preview)",
    "sessions.began": "coalesce(sessions.created, sessions.updated)",
    "docs.is_repeat": "docs.step <= sessions.repeats",
}
"""Columns that are expressions."""


def clause(db: Engine, condition: Condition) -> Clause:
    """A condition in the SQL of an engine."""
    op, column, value = condition
    column, placeholder = _EXPRESSIONS.get(column, column), db.placeholder
    match op:
        case "":
            return Clause()
        case "and" | "or":
            parts = [clause(db, one) for one in value]
            sql = f" {op.upper()} ".join(part.sql for part in parts)
            return Clause(sql if op == "and" else f"({sql})", tuple(given for part in parts for given in part.values))
        case "but not":
            sql, values = clause(db, value)
            return Clause(f"({sql}) IS NOT TRUE", values)
        case "is":
            return Clause(column)
        case "not":
            return Clause(f"NOT {column}")
        case "known" | "unknown":
            return Clause(f"{column} IS {'NOT ' if op == 'known' else ''}NULL")
        case "in":
            return Clause(f"{column} IN ({', '.join([placeholder] * len(value))})", tuple(value))
        case "among":
            return Clause(f"{column} IN ({', '.join(['NULL', *map(str, value)])})")
        case "like":
            one = f"{column} {db.like} {placeholder} ESCAPE '\\'"
            return Clause(f"({' OR '.join([one] * len(value))})", tuple(value))
        case "begins":
            return Clause(f"substr({column}, 1, {len(value)}) = {placeholder}", (value,))
        case "regexp":
            return Clause(f"{column} {db.regexp} {placeholder}", (value,))
        case "touches":
            sql, values = clause(db, value)
            paths = f"SELECT paths.id FROM {db.table('paths')} WHERE {sql}"
            inside = f"SELECT touched.doc FROM {db.table('touched')} WHERE touched.path IN ({paths})"
            return Clause(f"docs.id IN ({inside})", values)
        case "has":
            return db.having(value)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return Clause(f"{column} {op} {placeholder}", (value,))
        case _:
            raise AssertionError(op)


def where(db: Engine, *conditions: Condition) -> Clause:
    """All conditions; empty ones are true."""
    whole = Condition()
    for condition in conditions:
        whole = whole.and_(condition)
    return clause(db, whole) if whole.op else Clause("TRUE")
