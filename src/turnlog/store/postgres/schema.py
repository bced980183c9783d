"""The tables, made and brought up to date by numbered files of plain SQL."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import psycopg

from turnlog.errors import Unsupported
from turnlog.store.postgres.pool import Connection

_FIRST = """
create schema if not exists turnlog;
create table if not exists turnlog.migration (number int primary key, applied timestamptz not null default now())
"""
# Nobody but the owner of the tables can hold this lock, and nobody who only reads is in its way.
_LOCK = "lock table turnlog.migration in share row exclusive mode"
_IN_USE_S = 10.0
"""Somebody may be at work in a table. To wait for long would make everybody else wait behind us."""
_PATIENCE_S = 3600.0
"""A change may have to go through all sessions. Others who come meanwhile wait no longer than ever."""


@cache
def migrations() -> dict[int, str]:
    """What there is, by number."""
    migrations = {
        int(item.name[:4]): item.read_text(encoding="utf-8")
        for item in (files("turnlog.store.postgres") / "migrations").iterdir()
        if item.name.endswith(".sql")
    }
    return dict(sorted(migrations.items()))


def newest() -> int:
    """The number of the last one."""
    return max(migrations())


def version(connection: Connection) -> int:
    """The number of the newest migration in the database; 0 if there are no tables yet."""
    row = connection.execute("select to_regclass('turnlog.migration') is not null").fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute("select max(number) from turnlog.migration").fetchone()
    return int(row[0] or 0) if row else 0


def bring_up_to_date(connection: Connection, place: str) -> None:
    """Apply what is missing, one process at a time, whole or not at all; refuse what a newer turnlog made."""
    installed = version(connection)
    if installed < newest():
        if not installed:
            _begin(connection)
        patience, connection.patience = connection.patience, max(connection.patience, _PATIENCE_S)
        try:
            with connection.transaction():
                connection.execute(_LOCK)
                connection.execute("set local statement_timeout = 0")
                connection.execute(f"set local lock_timeout = '{_IN_USE_S:g}s'")
                installed = _migrate(connection)
        finally:
            connection.patience = patience
    if installed > newest():
        raise Unsupported(
            f"the tables at {place} are of version {installed}; this turnlog knows version {newest()}",
            hint="upgrade turnlog",
        )


def _begin(connection: Connection) -> None:
    """Make what the lock is on. Of several who do that at once, the later ones find it made."""
    try:
        _make(connection)
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable, psycopg.errors.DuplicateSchema):
        _make(connection)


def _make(connection: Connection) -> None:
    with connection.transaction():
        connection.script(_FIRST)


def _migrate(connection: Connection) -> int:
    installed = version(connection)
    for number, text in migrations().items():
        if number > installed:
            connection.script(text)
            connection.execute("insert into turnlog.migration (number) values (%s)", (number,))
            installed = number
    return installed


def tenant_if_current(connection: Connection, name: str) -> int | None:
    """The number of a tenant that is there, in tables of the version we know: usually, one question is enough."""
    query = "select (select max(number) from turnlog.migration), (select num from turnlog.tenant where name = %s)"
    try:
        row = connection.execute(query, (name,)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None
    return row[1] if row is not None and row[0] == newest() else None


def tenant_of(connection: Connection, name: str) -> int:
    """The number of a tenant, who is new if need be."""
    query = "select num from turnlog.tenant where name = %s"
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        connection.execute("insert into turnlog.tenant (name) values (%s) on conflict do nothing", (name,))
        row = connection.execute(query, (name,)).fetchone()
    assert row is not None
    return row[0]
