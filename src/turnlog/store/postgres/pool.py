"""Connections: made in the thread that needs one, so that an error says why; kept for the next one, of any tenant."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, LiteralString, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from turnlog.errors import Invalid, Unavailable
from turnlog.store.forked import renew_after_fork
from turnlog.store.postgres.connection import Connection
from turnlog.store.postgres.problem import as_error, may_pass, too_old

_T = TypeVar("_T")
_OLDEST = 130000
_POOLERS = ("transaction", "session")
HIDDEN = "\1"
"""How the names of tenants begin that were given up, and of which something is left to be erased."""


class Location:
    """A `postgresql://…` location: what the driver needs, what is ours, and what may be shown."""

    def __init__(self, text: str) -> None:
        self.text = text
        parts = urlsplit(text)
        asked = parse_qsl(parts.query, keep_blank_values=True)
        ours = {name: value for name, value in asked if name in ("tenant", "pooler", "connections")}
        self.url = urlunsplit(parts._replace(query=urlencode([pair for pair in asked if pair[0] not in ours])))
        try:
            options = conninfo_to_dict(self.url)
            for port in str(options.get("port") or "5432").split(","):
                int(port)
        except (psycopg.ProgrammingError, ValueError) as error:
            # libpq repeats the whole location, password included.
            hint = "postgresql://user@host:5432/name, and libpq's parameters behind a question mark"
            raise Invalid("that is not the location of a database", hint=hint) from error.with_traceback(None)
        self.given = frozenset(options)
        self.tenant = checked(ours.get("tenant", ""))
        self.pooler = ours.get("pooler")
        """How a pooler before the server works; None where we find out."""
        if self.pooler not in (None, *_POOLERS):
            raise Invalid(f"pooler={self.pooler:.80}", hint=f"one of {', '.join(_POOLERS)}; or nothing, to find out")
        self.connections = _number(ours.get("connections"))
        host, port = options.get("host") or options.get("hostaddr") or "localhost", options.get("port") or "5432"
        self.place = f"{host}:{port}/{options.get('dbname') or options.get('user') or ''}"

    def of(self, tenant: str) -> str:
        """The location of one of its tenants."""
        return f"{self.text}{'&' if '?' in self.text else '?'}tenant={quote(tenant, safe='')}"


def checked(tenant: str) -> str:
    """The name of a tenant that can be one."""
    try:
        tenant.encode()
    except UnicodeEncodeError:
        tenant = HIDDEN + tenant
    if "\0" in tenant or tenant.startswith(HIDDEN):
        raise Invalid(f"no tenant can be called {tenant!r:.80}", hint="text that begins with no control character")
    return tenant


def _number(given: str | None) -> int | None:
    if given is not None and not (given.isascii() and given.isdecimal() and int(given)):
        raise Invalid(f"connections={given:.80}", hint="how many may be in use at once, such as connections=20")
    return None if given is None else int(given)


class Connections:
    """At most `size` connections in use at once, and those that nobody uses: one pool for all tenants."""

    def __init__(self, location: Location, *, size: int, patience: float, durable: bool) -> None:
        self.location = location
        self.place = location.place
        self.patience = patience
        self.is_pooled: bool | None = None if location.pooler is None else location.pooler == "transaction"
        """Whether a pooler is before the server; None as long as nobody knows."""
        self._durable = durable
        self.size = location.connections or size
        self.free = self._permits()
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False
        renew_after_fork(self)

    def _permits(self) -> queue.SimpleQueue[None]:
        """As many as there may be connections in use. A queue is a fast semaphore."""
        permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(self.size):
            permits.put(None)
        return permits

    def after_fork(self) -> None:
        """In a child process: the connections are the parent's, and so is whoever holds a lock."""
        _inherited.extend(self._idle)  # to close them would end them in the parent as well
        self._idle = []
        self._mutex = threading.Lock()
        self.free = self._permits()

    def connect(self) -> Connection:
        """A new connection; psycopg's error if there is none."""
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
                raise too_old(connection.info.server_version, self.place)
            if self.is_pooled is None:
                # A pooler has told us a number of its own.
                row = connection.execute("select pg_backend_pid()", prepare=False).fetchone()
                self.is_pooled = row is None or row[0] != connection.info.backend_pid
            connection.configure(is_pooled=bool(self.is_pooled))
        except BaseException:
            connection.close()
            raise
        return connection

    def take(self) -> Connection:
        """A connection of one's own, outside the limit; give it back with `give`."""
        with self._mutex:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        return self.connect()

    def give(self, connection: Connection) -> None:
        """Keep it for the next one, unless it is of no use any more."""
        if not connection.closed and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with self._mutex:
                if not self._is_closed and len(self._idle) < self.size:
                    self._idle.append(connection)
                    return
        connection.close()

    def drop_idle(self) -> None:
        """Close what nobody uses."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.drop_idle()

    def close(self) -> None:
        """Close everything that nobody uses; what is in use is closed when it is given back."""
        self._is_closed = True
        self.drop_idle()


class Pool:
    """The connections as one tenant has them: whatever is done on one, is done as that tenant."""

    def __init__(self, connections: Connections, tenant: str) -> None:
        self.connections = connections
        self.tenant = tenant
        self.place = connections.place

    @property
    def patience(self) -> float:
        """So long somebody waits for the server."""
        return self.connections.patience

    def connect(self) -> Connection:
        """A new connection, outside the limit; psycopg's error if there is none."""
        connection = self.connections.connect()
        connection.tenant = self.tenant
        return connection

    def give(self, connection: Connection) -> None:
        """Keep it for the next one, unless it is of no use any more."""
        self.connections.give(connection)

    def _take(self) -> Connection:
        connection = self.connections.take()
        connection.tenant = self.tenant
        return connection

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """A connection for a moment. What went wrong on it is psycopg's error."""
        all_of_them = self.connections
        free = all_of_them.free
        try:
            free.get(timeout=self.patience)
        except queue.Empty:
            raise Unavailable(
                f"all {all_of_them.size} connections to {self.place} were busy for {self.patience:g} seconds",
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
                    all_of_them.drop_idle()  # what ended this one will have ended them
                raise
            finally:
                self.give(connection)
        finally:
            free.put(None)

    # ── work ──────────────────────────────────────────────────────────────────────────────────────

    def run(self, doing: str, job: Callable[[Connection, bool], _T]) -> _T:
        """Do something that may be done again. The job is told whether an answer of it may have been lost."""

        def attempt(again: bool) -> _T:
            with self.connection() as connection:
                return job(connection, again)

        return self._insist(doing, attempt)

    def own(self, doing: str, job: Callable[[Connection], _T]) -> tuple[Connection, _T]:
        """A connection of one's own on which this was done first; `give` takes it back."""

        def attempt(again: bool) -> tuple[Connection, _T]:
            connection = self._take()
            try:
                return connection, job(connection)
            except BaseException:
                connection.close()
                self.connections.drop_idle()
                raise

        return self._insist(doing, attempt)

    def _insist(self, doing: str, attempt: Callable[[bool], _T]) -> _T:
        deadline = time.monotonic() + self.patience
        pause, again = 0.02, False
        while True:
            try:
                return attempt(again)
            except psycopg.Error as error:
                if not may_pass(error) or time.monotonic() + pause > deadline:
                    raise as_error(error, doing, self.place) from error
            again = True
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def rows(self, doing: str, query: LiteralString, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The answer to a question."""
        return self.run(doing, lambda connection, _: connection.execute(query, values, binary=True).fetchall())


_inherited: list[Connection] = []
