"""Which sessions of a tenant have changed since they were indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnlog.catalog.index.batch import IndexedSession
from turnlog.catalog.index.notes import DIRTY, set_flag_sql
from turnlog.catalog.index.postgres.engine import PostgresEngine

if TYPE_CHECKING:
    from turnlog.catalog.index.batch import Batch
    from turnlog.store.capability import TableConnection

# A column that changes with every append has no database index, or every append would pay for it. But a row has the
# number of its transaction, which is quickly compared with the oldest that was open at the last update of the catalog.
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
_LEFT_OVER = """
select session from turnlog.own_docs where session = any(%s)
union select session from turnlog.own_spent where session = any(%s)
"""
_BEFORE = "select id, native, size, title, preview, mark, id from turnlog.own_sessions where id = %s"
_BEGIN = """
insert into turnlog.own_sessions (id, name, native, is_ours) values (%s, %s, %s, true) on conflict do nothing
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
_HOUR = 3600
_FAR = 1 << 30
"""After this many transactions, all sessions are compared again."""
_SLACK = 10


class Outdated(NamedTuple):
    """A session that changed after it was indexed."""

    num: int
    id: str
    is_deleted: bool
    seq: int
    size: int
    last_ms: int
    is_new: bool


class Since(NamedTuple):
    """The state of the index at its last update."""

    oldest: int
    """The oldest transaction that is open now."""
    now: int
    passed: int | None
    """The number of transactions since the last update; None if all sessions have to be compared."""
    sessions: int
    """The number of sessions at the last update."""


class SessionChanges:
    """Compares the sessions with what the index has of them."""

    def __init__(self, connection: TableConnection) -> None:
        self._connection = connection

    def since(self) -> Since:
        """The state of the index at its last update, and of the database now."""
        oldest, next, now = self._connection.rows(_NOW)[0]
        remembered: dict[str, int] = dict(self._connection.rows(_REMEMBERED))
        passed = next - remembered.get("transaction", 0)
        is_due = not 0 <= now - remembered.get("compared", 0) < _HOUR or not 0 <= passed < _FAR
        return Since(oldest, now, None if is_due else passed + _SLACK, remembered.get("sessions", 0))

    def changed(self, since: Since) -> list[Outdated]:
        """The sessions that were created, appended to, deleted or restored since the last update."""
        sql, values = _CHANGED, (self._connection.tenant,)
        if since.passed is not None:
            sql, values = sql + _SINCE, (*values, since.passed)
        rows = self._connection.rows(f"{sql} order by s.num", values)
        return [Outdated(num, bytes(id).decode("utf-8", "surrogatepass"), *rest) for num, id, *rest in rows]

    def gone(self) -> list[int]:
        """The sessions in the index that no longer exist."""
        return [row[0] for row in self._connection.rows(_GONE, (self._connection.tenant,))]

    def left_over(self, sessions: list[int]) -> list[int]:
        """The sessions that have rows in the index, but no row of their own."""
        rows = self._connection.rows(_LEFT_OVER, (sessions, sessions)) if sessions else []
        return [row[0] for row in rows]

    def before(self, session: int) -> IndexedSession | None:
        """What the index already has of a session."""
        rows = self._connection.rows(_BEFORE, (session,))
        return IndexedSession(*rows[0]) if rows else None

    def begin(self, batch: Batch, session: int, name: str, native: str) -> None:
        """Add the row of a new session."""
        batch.execute(_BEGIN, (session, name, native))

    def forget(self, session: int) -> None:
        """Remove a session that no longer exists. Others may have to count what it counted."""
        with self._connection.writing():
            self._connection.rows("select turnlog.own_forget(%s)", (session,))
            self._connection.rows(set_flag_sql(PostgresEngine(self._connection)), (DIRTY,))

    def remember(self, since: Since) -> None:
        """Record that the index has everything up to `since`."""
        with self._connection.writing():
            self._connection.rows("select turnlog.own_drop_meta(array['transaction', 'compared', 'sessions'])")
            self._connection.rows(_REMEMBER, (since.oldest, since.now))
