"""Connections: opened in the thread that needs one, so that it gets the error; reused by every tenant."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from turnlog.errors import Invalid, Unavailable
from turnlog.store.forked import renew_after_fork
from turnlog.store.postgres.connection import Connection
from turnlog.store.postgres.problem import as_error, may_pass, too_old

_T = TypeVar("_T")
_OLDEST = 130000
_PORT = 5432
_POOLERS = ("transaction", "session")
_PARAMETERS = ("tenant", "pooler", "connections")
"""The parameters of a location that are ours, not the driver's."""
HIDDEN = "\1"
"""The prefix of the names of dropped tenants whose rows are not all removed yet."""


class Location:
    """A `postgresql://…` location: the driver's part, our own parameters, and the part that may be shown."""

    def __init__(self, text: str) -> None:
        self.text = text
        front, mark, query = text.partition("?")
        pairs = query.split("&") if query else []
        our_pairs = [pair for pair in pairs if unquote(pair.partition("=")[0]) in _PARAMETERS]
        parameters = dict(parse_qsl("&".join(our_pairs), keep_blank_values=True))
        self.url = front + mark + "&".join(pair for pair in pairs if pair not in our_pairs)
        """The driver's part, as it was given."""
        try:
            options = conninfo_to_dict(self.url)
            servers = _servers(options)
        except (psycopg.ProgrammingError, ValueError) as error:
            # libpq repeats the whole location, password included.
            hint = "postgresql://user@host:5432/name, and libpq's parameters behind a question mark"
            raise Invalid("that is not the location of a database", hint=hint) from error.with_traceback(None)
        self.given = frozenset(options)
        self.tenant = valid_tenant(parameters.get("tenant", ""))
        self.pooler = parameters.get("pooler")
        """The mode of a pooler in front of the server; None to detect it."""
        if self.pooler not in (None, *_POOLERS):
            raise Invalid(f"pooler={self.pooler:.80}", hint=f"one of {', '.join(_POOLERS)}; or nothing, to find out")
        self.connections = _number(parameters.get("connections"))
        self.server = f"{servers}/{options.get('dbname') or options.get('user') or ''}"
        """The address as people may see it: hosts, ports and the database, without user and password."""

    def of(self, tenant: str) -> str:
        """Return the location of one of the tenants."""
        return f"{self.text}{'&' if '?' in self.text else '?'}tenant={quote(tenant, safe='')}"


def _servers(options: Mapping[str, Any]) -> str:
    """Return hosts with their ports. Raises `ValueError`.

    As for libpq, one port is that of all hosts, and a missing one is the default.
    """
    hosts = str(options.get("host") or options.get("hostaddr") or "").split(",")
    ports = [int(port or _PORT) for port in str(options.get("port") or "").split(",")]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return ",".join(f"{host or 'localhost'}:{port}" for host, port in zip_longest(hosts, ports, fillvalue=_PORT))


def valid_tenant(tenant: str) -> str:
    """Return a tenant's name if it is valid; otherwise raise `Invalid`."""
    if not _is_unicode(tenant) or "\0" in tenant or tenant.startswith(HIDDEN):
        raise Invalid(f"no tenant can be called {tenant!r:.80}", hint="text that begins with no control character")
    return tenant


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(given: str | None) -> int | None:
    if given is not None and not (given.isascii() and given.isdecimal() and int(given)):
        raise Invalid(f"connections={given:.80}", hint="how many may be in use at once, such as connections=20")
    return None if given is None else int(given)


class Connections:
    """One pool for all tenants: at most `size` connections in use at once, and the idle ones."""

    def __init__(self, location: Location, *, size: int, patience: float, durable: bool) -> None:
        self.location = location
        self.server = location.server
        self.patience = patience
        self.is_pooled: bool | None = None if location.pooler is None else location.pooler == "transaction"
        """Whether a pooler is in front of the server; None while that is unknown."""
        self._durable = durable
        self.size = location.connections or size
        self.free = self._permits()
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False
        renew_after_fork(self)

    def _permits(self) -> queue.SimpleQueue[None]:
        """Return one permit per connection that may be in use. A queue is a fast semaphore."""
        permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(self.size):
            permits.put(None)
        return permits

    def after_fork(self) -> None:
        """Reset in a child process: connections and permits belong to the parent."""
        _inherited.extend(self._idle)  # to close them would end them in the parent as well
        self._idle = []
        self._mutex = threading.Lock()
        self.free = self._permits()

    def connect(self) -> Connection:
        """Open a connection. Raises psycopg's errors."""
        options: dict[str, Any] = {
            "connect_timeout": max(2, int(self.patience / 2)),
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": int(self.patience * 1000),
            "application_name": "turnlog",
        }
        options = {name: value for name, value in options.items() if name not in self.location.given}
        connection = Connection.connect(self.location.url, autocommit=True, prepare_threshold=None, **options)
        connection.patience, connection.is_durable = self.patience, self._durable
        try:
            if connection.info.server_version < _OLDEST:
                raise too_old(connection.info.server_version, self.server)
            if self.is_pooled is None:
                # A pooler reports a process id of its own when the connection begins.
                row = connection.execute("select pg_backend_pid()", prepare=False).fetchone()
                self.is_pooled = row is None or row[0] != connection.info.backend_pid
            connection.configure(is_pooled=bool(self.is_pooled))
        except BaseException:
            connection.close()
            raise
        return connection

    def take(self) -> Connection:
        """Return a connection outside the limit; return it with `give`."""
        with self._mutex:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        return self.connect()

    def give(self, connection: Connection) -> None:
        """Return the connection to the pool. Close it if it is broken or inside a transaction."""
        if not connection.closed and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with self._mutex:
                if not self._is_closed and len(self._idle) < self.size:
                    self._idle.append(connection)
                    return
        connection.close()

    def drop_idle(self) -> None:
        """Close the idle connections."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.drop_idle()

    def close(self) -> None:
        """Close the idle connections; those in use are closed when they are returned."""
        self._is_closed = True
        self.drop_idle()


class Pool:
    """The connections for one tenant: every statement runs as that tenant."""

    def __init__(self, connections: Connections, tenant: str) -> None:
        self.connections = connections
        self.tenant = tenant
        self.server = connections.server

    @property
    def patience(self) -> float:
        """The seconds to wait for the server."""
        return self.connections.patience

    def connect(self) -> Connection:
        """Open a connection outside the limit. Raises psycopg's errors."""
        connection = self.connections.connect()
        connection.tenant = self.tenant
        return connection

    def give(self, connection: Connection) -> None:
        """See `Connections.give`."""
        self.connections.give(connection)

    def _take(self) -> Connection:
        connection = self.connections.take()
        connection.tenant = self.tenant
        return connection

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """Borrow a connection. Its errors are psycopg's."""
        connections = self.connections
        free = connections.free
        try:
            free.get(timeout=self.patience)
        except queue.Empty:
            raise Unavailable(
                f"all {connections.size} connections to {self.server} were busy for {self.patience:g} seconds",
                hint="a retry is safe",
            ) from None
        try:
            connection = self._take()
            try:
                yield connection
                connection.await_standby()
            except psycopg.OperationalError as error:
                if connection.closed or may_pass(error):
                    connection.close()
                    connections.drop_idle()  # they have probably failed for the same reason
                raise
            finally:
                self.give(connection)
        finally:
            free.put(None)

    # ── work ──────────────────────────────────────────────────────────────────────────────────────

    def run(self, doing: str, job: Callable[[Connection, bool], _T]) -> _T:
        """Run a job, with retries. Its second argument says whether the answer of an earlier attempt may be lost."""

        def attempt(again: bool) -> _T:
            with self.connection() as connection:
                return job(connection, again)

        return self._retry(doing, attempt)

    def own(self, doing: str, job: Callable[[Connection], _T]) -> tuple[Connection, _T]:
        """Return a connection outside the limit, and the result of `job` on it. Return it with `give`."""

        def attempt(again: bool) -> tuple[Connection, _T]:
            connection = self._take()
            try:
                return connection, job(connection)
            except BaseException:
                connection.close()
                self.connections.drop_idle()
                raise

        return self._retry(doing, attempt)

    def _retry(self, doing: str, attempt: Callable[[bool], _T]) -> _T:
        deadline = time.monotonic() + self.patience
        pause, again = 0.02, False
        while True:
            try:
                return attempt(again)
            except psycopg.Error as error:
                if not may_pass(error) or time.monotonic() + pause > deadline:
                    raise as_error(error, doing, self.server) from error
            again = True
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def rows(self, doing: str, query: LiteralString, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.run(doing, lambda connection, _: connection.execute(query, values, binary=True).fetchall())


_inherited: list[Connection] = []
