"""One connection on which nothing waits for ever, and a short way to run the statement that matters."""

from __future__ import annotations

import itertools
import select
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult

from turnlog.store.postgres.problem import Slow

_T = TypeVar("_T")
_WAIT = 0.1
_BINARY = 1
_GOOD = (psycopg.pq.ExecStatus.COMMAND_OK, psycopg.pq.ExecStatus.TUPLES_OK)
_pack_head = struct.Struct(">5i").pack
_pack_length = struct.Struct(">i").pack
_numbers = itertools.count(1)


class Statement:
    """A statement with parameters in binary, prepared on each connection where it is needed."""

    def __init__(self, query: str, types: Sequence[str]) -> None:
        self.name = b"turnlog %d" % next(_numbers)
        self.query = query.encode()
        self.types = [psycopg.adapters.types.get_oid(name) for name in types]
        self.formats = [_BINARY] * len(types)

    def whole(self, values: Sequence[Buffer | None]) -> tuple[Any, ...]:
        """All that is needed to run it without preparing it."""
        return self.query, values, self.types, self.formats, _BINARY


def array(of: str, items: Sequence[bytes]) -> bytes:
    """An array of such items, each of them in binary."""
    parts = [_pack_head(1, 0, psycopg.adapters.types.get_oid(of), len(items), 1)]
    for item in items:
        parts += (_pack_length(len(item)), item)
    return b"".join(parts)


class Connection(psycopg.Connection[Any]):
    """A connection on which nothing waits for ever, whatever has become of the server."""

    patience = 15.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: set[bytes] = set()
        self._is_alone = False
        self.add_notice_handler(self._noticed)
        self._poll: select.poll | None = None
        self._events = 0

    def wait(self, gen: PQGen[_T], interval: float = _WAIT, timeout: float | None = None) -> _T:
        """See psycopg; a time limit where the caller has none."""
        if timeout is not None:
            return super().wait(gen, interval, timeout)
        deadline = time.monotonic() + self.patience
        try:
            return super().wait(gen, interval, self.patience)
        except psycopg.OperationalError:
            if time.monotonic() < deadline:
                raise
            # What the server does with it is not known now, and the connection is of no use any more.
            self.close()
            raise self._slow() from None

    def call(self, statement: Statement, values: Sequence[Buffer | None]) -> PGresult:
        """Run a statement the short way: what a cursor does around it costs as much as the server's work on it."""
        pgconn = self.pgconn
        if pgconn.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return self._send(pgconn.send_query_params, *statement.whole(values))
        try:
            if statement.name not in self._known:
                self._send(pgconn.send_prepare, statement.name, statement.query, statement.types)
                self._known.add(statement.name)
            return self._send(pgconn.send_query_prepared, statement.name, values, statement.formats, _BINARY)
        except psycopg.errors.InvalidSqlStatementName:
            # psycopg forgets all prepared statements after a rollback, ours included.
            self._known.discard(statement.name)
            return self._send(pgconn.send_query_params, *statement.whole(values))

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == "SyncRepWaitForLSN":
            self._is_alone = True

    def confirm(self) -> None:
        """Wait again if somebody cancelled the wait of a commit for a standby: PostgreSQL calls it done then."""
        while self._is_alone:
            self._is_alone = False
            # A commit that changes nothing comes behind that one.
            self.execute("select pg_logical_emit_message(true, 'turnlog', '')")

    def _send(self, send: Callable[..., None], *values: Any) -> PGresult:
        try:
            send(*values)
            results = self._results()
        except BaseException:
            self.close()  # nobody knows where it stands
            raise
        for result in results:
            if result.status not in _GOOD:
                raise error_from_result(result, encoding=self.info.encoding)
        return results[0]

    def _results(self) -> list[PGresult]:
        """All of them: a commit that fails does so after the statement has been told done."""
        pgconn, deadline = self.pgconn, 0.0
        results: list[PGresult] = []
        while pgconn.flush():  # a long line, and a server that is slow to take it
            deadline = self._wait(select.POLLIN | select.POLLOUT, deadline)
            pgconn.consume_input()
        while True:
            while pgconn.is_busy():
                deadline = self._wait(select.POLLIN, deadline)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                return results
            results.append(result)

    def _wait(self, events: int, deadline: float) -> float:
        """Until the server has something, or takes something; returns until when that may go on."""
        if self._poll is None:
            self._poll, self._events = select.poll(), 0
        if events != self._events:
            self._poll.register(self.pgconn.socket, events)
            self._events = events
        now = time.monotonic()
        deadline = deadline or now + self.patience
        if deadline <= now or not self._poll.poll((deadline - now) * 1000):
            raise self._slow()
        return deadline

    def _slow(self) -> Slow:
        return Slow(f"no answer for {self.patience:g} seconds")
