"""Connections for tables that callers keep beside the logs: with our errors, and a lease for exclusive writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import psycopg

from turnlog.errors import TurnlogError, Unavailable
from turnlog.store.postgres.lease import Lease
from turnlog.store.postgres.problem import as_error

if TYPE_CHECKING:
    from turnlog.store.postgres.connection import Connection
    from turnlog.store.postgres.lease import Leases
    from turnlog.store.postgres.pool import Pool

_PAUSE_S = 0.05


class DedicatedConnection:
    """See `TableConnection`. It has a connection of its own only during a write, because there may be many tenants."""

    def __init__(self, pool: Pool, leases: Leases, name: str) -> None:
        self._pool = pool
        self._leases = leases
        self._name = name
        self._doing = f"querying the tables of the {name}"
        self._lease: Lease | None = None
        self._writing: Connection | None = None
        self.tenant = leases.tenant

    def close(self) -> None:
        """See `TableConnection.close`. Nothing is held open."""

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        given = _storable(values)
        if self._writing is not None:
            return self._writing.execute(sql, given).fetchall()
        return self._pool.run(self._doing, lambda connection, _: connection.execute(sql, given).fetchall())

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        given = [_storable(row) for row in rows]
        if not given:
            return
        with nullcontext() if self._writing is not None else self.writing():
            assert self._writing is not None
            with self._writing.cursor() as cursor:
                cursor.executemany(sql.encode(), given)

    @contextmanager
    def writing(self) -> Generator[None]:
        connection, _ = self._pool.own(self._doing, lambda opened: opened.begin())
        self._writing = connection
        try:
            with self._problems():
                if self._lease is not None and not self._lease.renew(connection):
                    what = f"another process took over the {self._name} meanwhile"
                    raise Unavailable(what, hint="a retry is safe")
                yield
                connection.execute("commit")
                connection.await_standby()
        except BaseException:
            _roll_back(connection)
            raise
        finally:
            self._writing = None
            self._pool.give(connection)

    @contextmanager
    def lock(self, waiting: Callable[[], None] | None = None) -> Generator[None]:
        lease = Lease(self._leases, self._name, shared=False)
        while self._pool.run(self._doing, lambda connection, _: lease.take(connection)) is not None:
            if waiting is not None:
                waiting()
            time.sleep(_PAUSE_S)
        self._leases.start_renewing(lease)
        self._lease = lease
        try:
            yield
        finally:
            self._lease = None
            self._leases.stop_renewing(lease)
            try:
                self._pool.run(f"releasing the lock of the {self._name}", lambda connection, _: lease.drop(connection))
            except TurnlogError:
                pass  # the lease is no longer renewed, so others wait only until it expires

    @contextmanager
    def _problems(self) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise as_error(error, self._doing, self._pool.server) from error


def _roll_back(connection: Connection) -> None:
    """End the transaction. If the server is gone, so is the transaction, and the first error is the one to raise."""
    try:
        if not connection.closed:
            connection.rollback()
    except psycopg.Error:
        connection.close()


def _storable(values: Sequence[object]) -> list[object]:
    """Remove NUL characters, which text in PostgreSQL cannot hold."""
    return [_without_nul(value) for value in values]


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    return [_without_nul(one) for one in cast("list[object]", value)] if isinstance(value, list) else value
