"""The tables, created and migrated by numbered files of plain SQL."""

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
# Only the owner of the tables can take this lock, and readers do not wait for it.
_LOCK = "lock table turnlog.migration in share row exclusive mode"
_IN_USE_S = 10.0
"""How long to wait for a table that is in use. A longer wait would block everyone else behind us."""
_PATIENCE_S = 3600.0
"""How long a migration may take: it may process all sessions. Other processes keep their usual limit meanwhile."""


@cache
def migrations() -> dict[int, str]:
    """Return the migrations by number."""
    migrations = {
        int(item.name[:4]): item.read_text(encoding="utf-8")
        for item in (files("turnlog.store.postgres") / "migrations").iterdir()
        if item.name.endswith(".sql")
    }
    return dict(sorted(migrations.items()))


def newest() -> int:
    """Return the number of the newest migration."""
    return max(migrations())


def version(connection: Connection) -> int:
    """Return the number of the newest migration in the database; 0 if there are no tables yet."""
    row = connection.execute("select to_regclass('turnlog.migration') is not null").fetchone()
    if row is None or not row[0]:
        return 0
    row = connection.execute("select max(number) from turnlog.migration").fetchone()
    return int(row[0] or 0) if row else 0


def bring_up_to_date(connection: Connection, server: str) -> None:
    """Apply missing migrations atomically, one process at a time; refuse tables of a newer turnlog."""
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
            f"the tables at {server} are of version {installed}; this turnlog knows version {newest()}",
            hint="upgrade turnlog",
        )


def _begin(connection: Connection) -> None:
    """Create the table that is locked during a migration. Several processes may try at once."""
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
    """Return the number of an existing tenant if the tables are current, else None: usually, one query is enough."""
    query = "select (select max(number) from turnlog.migration), (select num from turnlog.tenant where name = %s)"
    try:
        row = connection.execute(query, (name,)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None
    return row[1] if row is not None and row[0] == newest() else None


def tenant_of(connection: Connection, name: str) -> int:
    """Return the number of a tenant, which is created if necessary."""
    query = "select num from turnlog.tenant where name = %s"
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        connection.execute("insert into turnlog.tenant (name) values (%s) on conflict do nothing", (name,))
        row = connection.execute(query, (name,)).fetchone()
    assert row is not None
    return row[0]
