"""A connection on which every wait has a time limit, with a fast way to run statements.

Each transaction sets the tenant whose rows are visible: tenants share connections, and a pooler may use another server
connection for each transaction. Outside a transaction, the setting is sent before the statement, in one message.
"""

from __future__ import annotations

import itertools
import re
import select
import struct
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
from psycopg.abc import Buffer, PQGen
from psycopg.adapt import Loader, PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq.abc import PGresult

from turnlog.store.postgres.problem import Slow

_T = TypeVar("_T")
_WAIT = 0.1
_TEXT, _BINARY = 0, 1
_IDLE = psycopg.pq.TransactionStatus.IDLE
_CONNECTED = psycopg.pq.ConnStatus.OK
_SYNCED = psycopg.pq.ExecStatus.PIPELINE_SYNC
_ROWS = psycopg.pq.ExecStatus.TUPLES_OK
_GOOD = (psycopg.pq.ExecStatus.COMMAND_OK, _ROWS, _SYNCED)
_MOST_KNOWN = 200
"""The number of prepared statements per connection; beyond that, the oldest is dropped."""
_pack_head = struct.Struct(">5i").pack
_pack_length = struct.Struct(">i").pack
_numbers = itertools.count(1)
_PLACEHOLDER = re.compile(r"%(?:%|(?:\((\w+)\))?([sb]))")


class Statement:
    """A statement that is prepared on each connection on demand; parameters and rows are binary by default."""

    def __init__(
        self, query: bytes, types: Sequence[int], formats: Sequence[int] | None = None, answer: int = _BINARY
    ) -> None:
        self.name = b"turnlog %d" % next(_numbers)
        self.query = query
        self.types = list(types)
        self.formats = [_BINARY] * len(self.types) if formats is None else list(formats)
        self.answer = answer

    @classmethod
    def of(cls, query: str, types: Sequence[str]) -> Statement:
        """Return a statement, given the names of its parameter types."""
        return cls(query.encode(), [psycopg.adapters.types.get_oid(name) for name in types])

    def whole(self, values: Sequence[Buffer | None]) -> tuple[Any, ...]:
        """Return the arguments that run the statement without preparing it."""
        return self.query, values, self.types, self.formats, self.answer


_SET_TENANT_SQL = "set_config('turnlog.tenant', $1, true)"
# The server gives up before we do, and says why. A server set to synchronous_commit=off is
# overridden, unless durability is `flush`.
_SET_LIMITS_SQL = (
    "set_config('statement_timeout', ${0}, {2}) || set_config('synchronous_commit', "
    "case when ${1} = '' then 'off' when current_setting('synchronous_commit') = 'off' "
    "then 'on' else current_setting('synchronous_commit') end, {2})"
)
# These return no rows: fewer bytes, and nothing to parse.
_TENANT_SETTINGS = Statement.of(f"select where {_SET_TENANT_SQL} is null", ("text",))
_POOLED_SETTINGS = Statement.of(
    f"select where {_SET_TENANT_SQL} || {_SET_LIMITS_SQL.format(2, 3, 'true')} is null", ("text",) * 3
)
_SESSION_LIMITS = Statement.of(f"select where {_SET_LIMITS_SQL.format(1, 2, 'false')} is null", ("text",) * 2)


class _Query(NamedTuple):
    """A query as PostgreSQL takes it: `$1` for a value, with its name if it has one, and how it is sent."""

    text: bytes
    names: tuple[str, ...]
    formats: list[PyFormat]


@lru_cache(maxsize=1000)
def _converted(query: str) -> _Query:
    places: dict[str, int] = {}
    formats: list[PyFormat] = []

    def place(match: re.Match[str]) -> str:
        name, kind = match.groups()
        if kind is None:
            return "%"
        key = name or f" {len(formats)}"
        if key not in places:
            places[key] = len(formats) + 1
            formats.append(PyFormat.BINARY if kind == "b" else PyFormat.AUTO)
        return f"${places[key]}"

    text = _PLACEHOLDER.sub(place, query)
    return _Query(text.encode(), tuple(places), formats)


@lru_cache(maxsize=1000)
def _statement(query: bytes, types: tuple[int, ...], formats: tuple[int, ...], answer: int) -> Statement:
    return Statement(query, types, formats, answer)


class _Whole(Loader):
    """Loads numeric sums of whole numbers as int."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


class StatementAnswer:
    """The result of a statement."""

    def __init__(self, rows: list[tuple[Any, ...]], count: int) -> None:
        self._rows = rows
        self.rowcount = count

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row; None if there is none."""
        return self._rows[0] if self._rows else None


def array(of: str, items: Sequence[bytes]) -> bytes:
    """Return a binary array of items in binary."""
    parts = [_pack_head(1, 0, psycopg.adapters.types.get_oid(of), len(items), 1)]
    for item in items:
        parts += (_pack_length(len(item)), item)
    return b"".join(parts)


class Connection(psycopg.Connection[Any]):
    """A connection on which every wait has a time limit, whatever the server does."""

    patience = 15.0
    tenant = ""
    """The tenant whose rows are visible, from the next transaction on."""
    is_durable = True
    is_pooled = False
    """Whether each transaction may use another server connection: then statements are not prepared."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: dict[bytes, None] = {}
        self._is_alone = False
        self.add_notice_handler(self._noticed)
        self._poll: select.poll | None = None
        self._events = 0
        self.adapters.register_loader("numeric", _Whole)

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
            # It is unknown what the server does with the statement, so the connection cannot be reused.
            self.close()
            raise self._slow() from None

    # ── transactions ──────────────────────────────────────────────────────────────────────────────

    def _limits(self) -> list[Buffer | None]:
        return [b"%dms" % int(self.patience * 800), b"durable" if self.is_durable else b""]

    def _settings(self) -> tuple[Statement, list[Buffer | None]]:
        """Return the statement that a transaction begins with. Behind a pooler, it has to set everything."""
        if self.is_pooled:
            return _POOLED_SETTINGS, [self.tenant.encode(), *self._limits()]
        return _TENANT_SETTINGS, [self.tenant.encode()]

    def configure(self, *, is_pooled: bool) -> None:
        """Set whether the connection goes through a pooler, and its limits."""
        self.is_pooled = is_pooled
        if not is_pooled:
            self.call(_SESSION_LIMITS, self._limits(), prepare=False)

    @contextmanager
    def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> Generator[psycopg.Transaction]:
        """See psycopg. The transaction begins by setting the tenant."""
        is_new = self.pgconn.transaction_status == _IDLE
        with super().transaction(savepoint_name, force_rollback) as transaction:
            if is_new:
                self.call(*self._settings())
            yield transaction

    def begin(self) -> None:
        """Begin a transaction that the caller ends by `execute`."""
        self._send(self.pgconn.send_query, b"begin")
        self.call(*self._settings())

    def script(self, text: str) -> None:
        """Run statements without values, inside a transaction."""
        self._send(self.pgconn.send_query, text.encode())

    # ── statements ────────────────────────────────────────────────────────────────────────────────

    def execute(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool = False
    ) -> StatementAnswer:
        """See psycopg, but the whole result is loaded. Outside a transaction, the statement is one."""
        converted = _converted(query.decode() if isinstance(query, bytes) else query)
        if isinstance(params, Mapping):
            named = cast("Mapping[str, Any]", params)
            params = [named[name] for name in converted.names]
        transformer = Transformer.from_context(self)
        values = transformer.dump_sequence(params or (), converted.formats)
        statement = _statement(
            converted.text,
            tuple(transformer.types or ()),
            tuple(transformer.formats or ()),
            _BINARY if binary else _TEXT,
        )
        result = self.call(statement, values, prepare=prepare is not False)
        if result.status != _ROWS:
            return StatementAnswer([], result.command_tuples or 0)
        transformer.set_pgresult(result)
        return StatementAnswer(transformer.load_rows(0, result.ntuples, tuple), result.ntuples)

    def call(self, statement: Statement, values: Sequence[Buffer | None], *, prepare: bool = True) -> PGresult:
        """Run a statement without a cursor, which would cost as much as the server's work on the statement."""
        if not prepare or self.is_pooled:
            return self._run(statement, values, named=False)
        try:
            self._prepare(statement)
            return self._run(statement, values, named=True)
        except psycopg.errors.InvalidSqlStatementName:
            # The statement was deallocated, or a pooler was not detected.
            self._known.clear()
            if self.pgconn.transaction_status != _IDLE:
                raise
            return self._run(statement, values, named=False)

    def _prepare(self, statement: Statement) -> None:
        for one in (statement, self._settings()[0]):
            if one.name not in self._known:
                if len(self._known) >= _MOST_KNOWN:
                    oldest = next(iter(self._known))
                    del self._known[oldest]
                    self._send(self.pgconn.send_query, b'deallocate "%b"' % oldest)
                self._send(self.pgconn.send_prepare, one.name, one.query, one.types)
                self._known[one.name] = None

    def _run(self, statement: Statement, values: Sequence[Buffer | None], *, named: bool) -> PGresult:
        if self.pgconn.transaction_status != _IDLE:
            return self._send(self._sending(statement, values, named=named))

        def both() -> None:
            # Without a `begin`, what comes in one message is one transaction.
            self.pgconn.enter_pipeline_mode()
            self._sending(*self._settings(), named=named)()
            self._sending(statement, values, named=named)()
            self.pgconn.pipeline_sync()

        return self._send(both, number=1)

    def _sending(self, statement: Statement, values: Sequence[Buffer | None], *, named: bool) -> Callable[[], None]:
        if named:
            how = (statement.name, values, statement.formats, statement.answer)
            return lambda: self.pgconn.send_query_prepared(*how)
        return lambda: self.pgconn.send_query_params(*statement.whole(values))

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.source_function == "SyncRepWaitForLSN":
            self._is_alone = True

    def await_standby(self) -> None:
        """Wait again if a commit's wait for a standby was cancelled, because PostgreSQL then reports success."""
        while self._is_alone:
            self._is_alone = False
            # This commit changes nothing, and comes after that one.
            self.execute("select pg_logical_emit_message(true, 'turnlog', '')")

    def _send(self, send: Callable[..., None], *values: Any, number: int = 0) -> PGresult:
        """Send a message, and wait for the whole answer. Returns the result of the statement `number`."""
        pgconn = self.pgconn
        try:
            send(*values)
            results = self._results()
            if pgconn.pipeline_status and pgconn.status == _CONNECTED:
                pgconn.exit_pipeline_mode()
        except BaseException:
            self.close()  # its state is unknown
            raise
        for result in results:
            if result.status not in _GOOD:
                raise error_from_result(result, encoding=self.info.encoding)
        if pgconn.status != _CONNECTED:
            raise psycopg.OperationalError("the connection was lost")
        return results[number]

    def _results(self) -> list[PGresult]:
        """Return all results: a commit may fail after its statement was reported as complete."""
        pgconn, deadline = self.pgconn, 0.0
        is_pipeline = pgconn.pipeline_status
        results: list[PGresult] = []
        while pgconn.flush():  # a long line that the server takes slowly
            deadline = self._wait(select.POLLIN | select.POLLOUT, deadline)
            pgconn.consume_input()
        while True:
            while pgconn.is_busy():
                deadline = self._wait(select.POLLIN, deadline)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is not None:
                results.append(result)
                if result.status == _SYNCED:
                    return results
            elif not is_pipeline or pgconn.status != _CONNECTED:
                return results

    def _wait(self, events: int, deadline: float) -> float:
        """Wait until the server sends or accepts data. Returns the deadline."""
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
