"""A connection of one's own, for whoever keeps tables beside the logs: with our errors, and a lease to write alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg.adapt import Buffer, Loader

from turnlog.errors import TurnlogError, Unavailable
from turnlog.store.postgres.lease import Lease
from turnlog.store.postgres.problem import as_error

if TYPE_CHECKING:
    from turnlog.store.postgres.connection import Connection
    from turnlog.store.postgres.lease import Leases
    from turnlog.store.postgres.pool import Pool

_PAUSE_S = 0.05


class _Whole(Loader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


class DedicatedConnection:
    """See `TableConnection`. Made when it is first needed, and again when it broke; given back when it is closed."""

    def __init__(self, pool: Pool, leases: Leases, name: str) -> None:
        self._pool = pool
        self._leases = leases
        self._name = name
        self._doing = f"asking the {name}"
        self._lease: Lease | None = None
        self._connection: Connection | None = None
        self.tenant = leases.tenant

    @property
    def connection(self) -> Connection:
        """The driver's own."""
        if self._connection is None or self._connection.closed:
            self._connection, _ = self._pool.own(self._doing, lambda made: made.execute("select 1"))
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._pool.give(self._connection)
            self._connection = None

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._problems():
            cursor = self.connection.cursor()
            cursor.adapters.register_loader("numeric", _Whole)
            cursor.execute(sql.encode(), _storable(values) if values else None)
            return cursor.fetchall() if cursor.description is not None else []

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        given = [_storable(row) for row in rows]
        if given:
            with self._problems(), self.connection.cursor() as cursor:
                cursor.executemany(sql.encode(), given)

    @contextmanager
    def writing(self) -> Generator[None]:
        with self._problems(), self.connection.transaction():
            if self._lease is not None and not self._lease.renew(self.connection):
                raise Unavailable(f"another process went on with the {self._name} meanwhile", hint="a retry is safe")
            yield

    @contextmanager
    def lock(self, waiting: Callable[[], None] | None = None) -> Generator[None]:
        lease = Lease(self._leases, self._name, together=False)
        while self._taken(lease) is not None:
            if waiting is not None:
                waiting()
            time.sleep(_PAUSE_S)
        self._leases.keep(lease)
        self._lease = lease
        try:
            yield
        finally:
            self._lease = None
            self._leases.leave(lease)
            try:
                self._pool.run(f"letting go of the {self._name}", lambda made, _: lease.drop(made))
            except TurnlogError:
                pass  # nobody renews it: others wait for a while, and go on

    def _taken(self, lease: Lease) -> str | None:
        with self._problems():
            return lease.take(self.connection)

    @contextmanager
    def _problems(self) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            if self._connection is not None and isinstance(error, psycopg.OperationalError):
                self._connection.close()
            raise as_error(error, self._doing, self._pool.place) from error


def _storable(values: Sequence[object]) -> list[object]:
    """Text in PostgreSQL has no NUL."""
    return [_without_nul(value) for value in values]


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    return [_without_nul(one) for one in cast("list[object]", value)] if isinstance(value, list) else value
