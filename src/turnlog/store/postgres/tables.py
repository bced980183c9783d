"""The catalog's tables in the database, for whoever speaks to those of SQLite: the same questions, translated."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import psycopg
from psycopg.adapt import Buffer, Loader

from turnlog.errors import TurnlogError, Unavailable
from turnlog.store.postgres.lease import Lease
from turnlog.store.postgres.names import id_text
from turnlog.store.postgres.problem import as_error

if TYPE_CHECKING:
    from turnlog.store.postgres.connection import Connection
    from turnlog.store.postgres.lease import Leases
    from turnlog.store.postgres.pool import Pool

_PAUSE_S = 0.05
_NAMES = re.compile(r"\b(sessions|docs|texts|words|paths|touched|spent|quarters|meta)\b")
_IGNORE = "INSERT OR IGNORE INTO"
# What changes with every append is in no index, or every append would pay for it. But a row says who wrote it: which
# transaction. That is quickly compared with the oldest that was under way when the catalog was last brought up to date.
_CHANGED = """
select s.num, s.id, s.place = 'deleted', s.last_seq, s.bytes, s.last_ms, c.id is null
from turnlog.session as s left join turnlog.own_sessions as c on c.id = s.num
where s.tenant = %s and s.place in ('live', 'deleted')
    and (c.id is null or c.seq <> s.last_seq or c.is_deleted <> (s.place = 'deleted'))
"""
_SINCE = " and age(s.xmin) <= %s"
_GONE = """
select c.id from turnlog.own_sessions as c
where not exists (select from turnlog.session as s where s.tenant = %s and s.num = c.id and s.place <> 'base')
"""
_NOW = """
select pg_snapshot_xmin(pg_current_snapshot())::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
    extract(epoch from clock_timestamp())::bigint
"""
_REMEMBERED = "select key, value from turnlog.own_meta where key in ('transaction', 'compared', 'sessions')"
_REMEMBER = """
insert into turnlog.own_meta (key, value)
values ('transaction', %s), ('compared', %s), ('sessions', (select count(*) from turnlog.own_sessions))
"""
# Deleting is for functions: who may delete from a table may also lock it against everybody.
_DELETES = {
    "DELETE FROM meta WHERE key = ?": "select turnlog.own_drop_meta(array[%s])",
    "DELETE FROM quarters WHERE session = ?": "select turnlog.own_drop_quarters(%s)",
    "DELETE FROM spent WHERE session = ? AND step = ?": (
        "select turnlog.own_drop_spent(one, step, step) from (select %s::bigint, %s::bigint) as gone (one, step)"
    ),
    "DELETE FROM spent WHERE session = ? AND step >= ?": f"select turnlog.own_drop_spent(%s, %s, {(1 << 63) - 1})",
}
_HOUR = 3600
_FAR = 1 << 30
"""So many transactions back it cannot be told any more."""
_SLACK = 10


class Outdated(NamedTuple):
    """A session that the catalog does not know as it is now."""

    num: int
    id: str
    is_deleted: bool
    seq: int
    size: int
    last_ms: int
    is_new: bool


class Since(NamedTuple):
    """When the catalog was last brought up to date."""

    oldest: int
    """The oldest transaction that is under way now."""
    now: int
    passed: int | None
    """How many transactions there were since then; None if everything has to be compared."""
    sessions: int
    """How many sessions it had then."""


class _Whole(Loader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data))


@lru_cache(maxsize=256)
def translated(sql: str) -> str:
    """A statement of SQLite's in the words of PostgreSQL, about the rows of this tenant."""
    if sql.startswith(_IGNORE):
        sql = f"INSERT INTO{sql.removeprefix(_IGNORE)} ON CONFLICT DO NOTHING"
    if sql in _DELETES:
        return _DELETES[sql]
    sql = _NAMES.sub(r"turnlog.own_\1", sql)
    return sql.replace(" LIKE ", " ILIKE ").replace(" REGEXP ", " ~* ").replace("?", "%s")


class Tables:
    """A connection of one's own to them, until it is closed."""

    def __init__(self, pool: Pool, leases: Leases) -> None:
        self._pool = pool
        self._leases = leases
        self._tenant = leases.tenant
        self._lease: Lease | None = None
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """Made when it is needed."""
        if self._connection is None or self._connection.closed:
            self._connection, _ = self._pool.own("asking the catalog", lambda made: made.execute("select 1"))
        return self._connection

    def close(self) -> None:
        """Give it back."""
        if self._connection is not None:
            self._pool.give(self._connection)
            self._connection = None

    def execute(self, sql: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        """As a connection to SQLite would."""
        return self.ask(translated(sql), values)

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """As a connection to SQLite would."""
        self.ask_many(translated(sql), rows)

    def ask(self, sql: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        """In PostgreSQL's own words."""
        with self._doing():
            cursor = self.connection.cursor()
            cursor.adapters.register_loader("numeric", _Whole)
            return cursor.execute(sql.encode(), _storable(values) if values else None)

    def ask_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """The same with many values."""
        with self._doing(), self.connection.cursor() as cursor:
            cursor.executemany(sql.encode(), [_storable(row) for row in rows])

    def since(self) -> Since:
        """How it stands with the catalog."""
        oldest, next, now = self.ask(_NOW).fetchall()[0]
        known: dict[str, int] = dict(self.ask(_REMEMBERED).fetchall())
        passed = next - known.get("transaction", 0)
        is_due = not 0 <= now - known.get("compared", 0) < _HOUR or not 0 <= passed < _FAR
        return Since(oldest, now, None if is_due else passed + _SLACK, known.get("sessions", 0))

    def changed(self, since: Since | None = None) -> list[Outdated]:
        """The sessions that were made, or have grown, or were moved, since then; without `since`, ever."""
        if since is None or since.passed is None:
            rows = self.ask(f"{_CHANGED} order by s.num", (self._tenant,))
        else:
            rows = self.ask(f"{_CHANGED}{_SINCE} order by s.num", (self._tenant, since.passed))
        return [Outdated(num, id_text(bytes(name)), *rest) for num, name, *rest in rows]

    def gone(self) -> list[int]:
        """Those that the catalog knows and that are no longer there."""
        return [row[0] for row in self.ask(_GONE, (self._tenant,))]

    def remember(self, since: Since) -> None:
        """Everything that was there then is in the catalog."""
        with self.writing():
            self.ask("select turnlog.own_drop_meta(array['transaction', 'compared', 'sessions'])")
            self.ask(_REMEMBER, (since.oldest, since.now))

    @contextmanager
    def writing(self) -> Generator[None]:
        """All of it or nothing."""
        with self._doing(), self.connection.transaction():
            if self._lease is not None and not self._lease.renew(self.connection):
                raise Unavailable("another process went on with the catalog meanwhile", hint="a retry is safe")
            yield

    @contextmanager
    def lock(self, waiting: Callable[[], None] | None = None) -> Generator[None]:
        """Nobody else brings the catalog of this tenant up to date inside. `waiting` is told while somebody does."""
        lease = Lease(self._leases, "catalog", together=False)
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
                self._pool.run("letting go of the catalog", lambda made, _: lease.drop(made))
            except TurnlogError:
                pass  # nobody renews it: others wait for a while, and go on

    def _taken(self, lease: Lease) -> str | None:
        with self._doing():
            return lease.take(self.connection)

    @contextmanager
    def _doing(self) -> Generator[None]:
        try:
            yield
        except psycopg.Error as error:
            if self._connection is not None and isinstance(error, psycopg.OperationalError):
                self._connection.close()
            raise as_error(error, "asking the catalog", self._pool.place) from error


def forget(connection: Connection, session: int) -> None:
    """A session is removed for good, and with it what was said in it. Inside a transaction."""
    connection.execute("select turnlog.own_forget(%s)", (session,))
    # Others may count from now on what it counted.
    connection.execute("insert into turnlog.own_meta (key, value) values ('unsettled', 1) on conflict do nothing")


def _storable(values: Sequence[object]) -> list[object]:
    """Text in PostgreSQL has no NUL."""
    return [_without_nul(value) for value in values]


def _without_nul(value: object) -> object:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd") if "\0" in value else value
    return [_without_nul(one) for one in cast("list[object]", value)] if isinstance(value, list) else value
