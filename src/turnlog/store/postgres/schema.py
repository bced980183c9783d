"""The tables, made and brought up to date by numbered files of plain SQL."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from turnlog.errors import Unsupported
from turnlog.store.postgres.pool import Connection

_LOCK = 0x7475726E6C6F67
"""The advisory lock of whoever changes the tables: "turnlog"."""
_PATIENCE_S = 3600.0
"""A change may have to go through all sessions. Others who come meanwhile wait no longer than ever."""


@cache
def migrations() -> dict[int, str]:
    """What there is, by number."""
    found = {
        int(item.name[:4]): item.read_text(encoding="utf-8")
        for item in (files("turnlog.store.postgres") / "migrations").iterdir()
        if item.name.endswith(".sql")
    }
    return dict(sorted(found.items()))


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
    found = version(connection)
    if found < newest():
        # Before the transaction begins: inside, the server may still believe that there is no such table.
        connection.execute("select pg_advisory_lock(%s)", (_LOCK,))
        patience, connection.patience = connection.patience, max(connection.patience, _PATIENCE_S)
        try:
            with connection.transaction():
                connection.execute("set local statement_timeout = 0")
                found = _migrate(connection)
        finally:
            connection.patience = patience
            if not connection.closed:
                connection.execute("select pg_advisory_unlock(%s)", (_LOCK,))
    if found > newest():
        raise Unsupported(
            f"the tables at {place} are of version {found}; this turnlog knows version {newest()}",
            hint="upgrade turnlog",
        )


def _migrate(connection: Connection) -> int:
    found = version(connection)
    if not found:
        connection.execute("create schema if not exists turnlog")
        connection.execute(
            "create table turnlog.migration (number int primary key, applied timestamptz not null default now())"
        )
    for number, text in migrations().items():
        if number > found:
            connection.execute(text.encode(), prepare=False)
            connection.execute("insert into turnlog.migration (number) values (%s)", (number,))
            found = number
    return found
