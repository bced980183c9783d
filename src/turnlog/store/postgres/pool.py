"""Connections: made in the thread that needs one, so that an error says why; kept for the next one."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, LiteralString, Protocol, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict

from turnlog.errors import Invalid, Unavailable
from turnlog.store.postgres.connection import Connection
from turnlog.store.postgres.problem import as_error, may_pass, too_old

_T = TypeVar("_T")
_OLDEST = 130000


class Location:
    """A `postgresql://…` location: what the driver needs, what is ours, and what may be shown."""

    def __init__(self, text: str) -> None:
        parts = urlsplit(text)
        self.tenant = ""
        rest: list[tuple[str, str]] = []
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name == "tenant":
                self.tenant = value
            else:
                rest.append((name, value))
        self.url = urlunsplit(parts._replace(query=urlencode(rest)))
        try:
            found = conninfo_to_dict(self.url)
            for port in str(found.get("port") or "5432").split(","):
                int(port)
        except (psycopg.ProgrammingError, ValueError) as error:
            # libpq repeats the whole location, password included.
            hint = "postgresql://user@host:5432/name, and libpq's parameters behind a question mark"
            raise Invalid("that is not the location of a database", hint=hint) from error.with_traceback(None)
        self.given = frozenset(found)
        if "\0" in self.tenant:
            raise Invalid(f"the tenant {self.tenant!r} has a NUL in it")
        host, port = found.get("host") or found.get("hostaddr") or "localhost", found.get("port") or "5432"
        self.place = f"{host}:{port}/{found.get('dbname') or found.get('user') or ''}"


class Pool:
    """At most `size` connections in use at once, and those that nobody uses."""

    def __init__(self, location: Location, *, size: int, patience: float, durable: bool) -> None:
        self.location = location
        self.place = location.place
        self.patience = patience
        self._durable = durable
        self._size = size
        self._free = self._permits()
        self._mutex = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False
        renew_after_fork(self)

    def _permits(self) -> queue.SimpleQueue[None]:
        """As many as there may be connections in use. A queue is a fast semaphore."""
        permits: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(self._size):
            permits.put(None)
        return permits

    def after_fork(self) -> None:
        """In a child process: the connections are the parent's, and so is whoever holds a lock."""
        _inherited.extend(self._idle)  # to close them would end them in the parent as well
        self._idle = []
        self._mutex = threading.Lock()
        self._free = self._permits()

    # ── connections ───────────────────────────────────────────────────────────────────────────────

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
        made = Connection.connect(self.location.url, autocommit=True, prepare_threshold=0, **options)
        made.patience = self.patience
        try:
            if made.info.server_version < _OLDEST:
                raise too_old(made.info.server_version, self.place)
            made.execute(
                "select set_config('turnlog.tenant', %s, false), set_config('statement_timeout', %s, false), "
                "set_config('synchronous_commit', case when %s then 'off' "
                "when current_setting('synchronous_commit') = 'off' then 'on' "
                "else current_setting('synchronous_commit') end, false)",
                # The server gives up first, and says why.
                (self.location.tenant, f"{int(self.patience * 800)}ms", not self._durable),
            )
        except BaseException:
            made.close()
            raise
        return made

    def take(self) -> Connection:
        """A connection of one's own, outside the limit; give it back with `give`."""
        with self._mutex:
            while self._idle:
                found = self._idle.pop()
                if not found.closed:
                    return found
        return self.connect()

    def give(self, connection: Connection) -> None:
        """Keep it for the next one, unless it is of no use any more."""
        if not connection.closed and connection.pgconn.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with self._mutex:
                if not self._is_closed and len(self._idle) < self._size:
                    self._idle.append(connection)
                    return
        connection.close()

    @contextmanager
    def connection(self) -> Generator[Connection]:
        """A connection for a moment. What went wrong on it is psycopg's error."""
        free = self._free
        try:
            free.get(timeout=self.patience)
        except queue.Empty:
            raise Unavailable(
                f"all {self._size} connections to {self.place} were busy for {self.patience:g} seconds",
                hint="a retry is safe",
            ) from None
        try:
            connection = self.take()
            try:
                yield connection
                connection.confirm()
            except psycopg.OperationalError as error:
                if connection.closed or may_pass(error):
                    connection.close()
                    self.drop_idle()  # what ended this one will have ended them
                raise
            finally:
                self.give(connection)
        finally:
            free.put(None)

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
            connection = self.take()
            try:
                return connection, job(connection)
            except BaseException:
                connection.close()
                self.drop_idle()
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


class Renewable(Protocol):
    """Something that a forked process has to begin anew."""

    def after_fork(self) -> None:
        """In the child."""


_renewables: WeakSet[Renewable] = WeakSet()
_inherited: list[Connection] = []


def renew_after_fork(what: Renewable) -> None:
    """Have `after_fork` called in every child process."""
    _renewables.add(what)


def _renew_all() -> None:
    for what in list(_renewables):
        what.after_fork()


os.register_at_fork(after_in_child=_renew_all)
