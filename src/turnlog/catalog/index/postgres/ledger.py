"""What brings sessions into step with each other, in PostgreSQL's words.

Everything is asked of views that show the rows of one tenant. Deleting is for functions: who may delete from a table
may also lock it against everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.contract import LedgerStatements
from turnlog.catalog.index.spending import QUARTER_MS
from turnlog.catalog.values import COUNTS

if TYPE_CHECKING:
    from turnlog.store.tables import TableConnection

_COUNTS = ", ".join(COUNTS)
_SUMS = ", ".join(f"sum({name})" for name in COUNTS)
STATEMENTS = LedgerStatements(
    kin="""
        select id, native, is_ours, agent, fork, origin, family, depth, copy_of, is_copied, is_deleted
        from turnlog.own_sessions
        where fork is not null or family <> '' or copy_of is not null or is_copied or (is_ours and origin <> '')
            or origin in (select origin from turnlog.own_sessions where origin <> '' group by 1 having count(*) > 1)
            or native in (select fork from turnlog.own_sessions where fork is not null)
        """,
    said="select entry from turnlog.own_docs where session = %s",
    relate="update turnlog.own_sessions set family = %s, depth = %s, copy_of = %s, is_copied = %s where id = %s",
    tokens="select token from turnlog.own_spent where session = %s",
    shared="""
        select token from turnlog.own_spent group by token having count(*) > 1
        union select token from turnlog.own_spent where is_inherited
        """,
    shared_by="""
        select token from turnlog.own_spent as p where session = any(%s) and (is_inherited
            or exists (select from turnlog.own_spent as o where o.token = p.token and o.session <> p.session))
        """,
    holders="""
        select p.token, p.at, p.session, p.is_inherited, s.family, s.is_deleted, s.depth, s.created, s.is_ours, s.native
        from turnlog.own_spent as p join turnlog.own_sessions as s on s.id = p.session where p.token = any(%s)
        """,
    inherit="update turnlog.own_spent set is_inherited = %s where session = %s and token = %s",
    sessions="select id from turnlog.own_sessions",
    sums=f"""
        select session, is_inherited, model, sum(cost), count(*) - count(cost), sum(cost) filter (where is_reported),
            {_SUMS} from turnlog.own_spent where session = any(%s) group by session, is_inherited, model
        """,
    put_sums="""
        update turnlog.own_sessions set own = %s, cost = %s, unpriced = %s,
            inherited = case when before <> '' then before else %s end where id = %s
        """,
    subagents="""
        select id, is_ours, agent, native, parent, own, subagents from turnlog.own_sessions
        where parent is not null or subagents <> '' or native in (select parent from turnlog.own_sessions)
        """,
    put_subagents="update turnlog.own_sessions set subagents = %s where id = %s",
    totals="""
        select s.id, s.totals, c.id from turnlog.own_sessions as s
        left join turnlog.own_sessions as c on s.copy_of = c.native and c.is_ours and c.origin = s.origin
        where s.totals <> '' and not s.is_ours
        """,
    booked=f"""
        select {_SUMS}, sum(cost) filter (where is_reported) from turnlog.own_spent
        where session = %s and is_total and (%s::text is null or model = %s)
        """,
    spend=f"""
        insert into turnlog.own_spent (session, step, token, at, model, is_reported, is_total, cost, {_COUNTS})
        values ({", ".join(["%s"] * (8 + len(COUNTS)))}) on conflict do nothing
        """,
    drop_spent="select turnlog.own_drop_spent(%s, %s, %s)",
    drop_quarters="select turnlog.own_drop_quarters(%s)",
    add_quarters=f"""
        insert into turnlog.own_quarters (session, quarter, model, requests, cost, unpriced, {_COUNTS})
        select session, at / {QUARTER_MS}, model, count(*), coalesce(sum(cost), 0), count(*) - count(cost), {_SUMS}
        from turnlog.own_spent where session = %s and not is_inherited group by 1, 2, 3
        """,
    unpriced=f"select session, token, at, model, is_total, {_COUNTS} from turnlog.own_spent where cost is null",
    put_cost="update turnlog.own_spent set cost = %s where session = %s and token = %s",
    docs="select id, step, entry, hash from turnlog.own_docs where session = %s",
    put_session="update turnlog.own_sessions set {} where id = %s",
    column="{} = %s",
    flag="insert into turnlog.own_meta (key, value) values (%s, 1) on conflict do nothing",
)


class PostgresLedger:
    """See `Ledger`."""

    sql = STATEMENTS

    def __init__(self, connection: TableConnection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See `Ledger.rows`."""
        return self._connection.rows(sql, values)

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """See `Ledger.run`."""
        self._connection.run(sql, rows)

    def get(self, key: str) -> Any:
        """See `Ledger.get`."""
        rows = self.rows("select value from turnlog.own_meta where key = %s", (key,))
        return rows[0][0] if rows else None

    def note(self, key: str, value: object) -> None:
        """See `Ledger.note`."""
        self.drop(key)
        self.rows("insert into turnlog.own_meta (key, value) values (%s, %s)", (key, value))

    def drop(self, key: str) -> None:
        """See `Ledger.drop`."""
        self.rows("select turnlog.own_drop_meta(array[%s])", (key,))
