"""What brings sessions into step with each other, in SQLite's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.contract import LedgerStatements
from turnlog.catalog.index.spending import QUARTER_MS
from turnlog.catalog.values import COUNTS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

_COUNTS = ", ".join(COUNTS)
_SUMS = ", ".join(f"sum({name})" for name in COUNTS)
STATEMENTS = LedgerStatements(
    kin="""
        SELECT id, native, is_ours, agent, fork, origin, family, depth, copy_of, is_copied, is_deleted FROM sessions
        WHERE fork IS NOT NULL OR family <> '' OR copy_of IS NOT NULL OR is_copied OR (is_ours AND origin <> '')
        OR origin IN (SELECT origin FROM sessions WHERE origin <> '' GROUP BY origin HAVING count(*) > 1)
        OR native IN (SELECT fork FROM sessions WHERE fork IS NOT NULL)
        """,
    said="SELECT entry FROM docs WHERE session = ?",
    relate="UPDATE sessions SET family = ?, depth = ?, copy_of = ?, is_copied = ? WHERE id = ?",
    tokens="SELECT token FROM spent WHERE session = ?",
    shared="""
        SELECT token FROM spent GROUP BY token HAVING count(*) > 1 UNION SELECT token FROM spent WHERE is_inherited
        """,
    shared_by="""
        SELECT token FROM spent p WHERE session IN (SELECT value FROM json_each(?)) AND (is_inherited
        OR EXISTS (SELECT 1 FROM spent o WHERE o.token = p.token AND o.session <> p.session))
        """,
    holders="""
        SELECT p.token, p.at, p.session, p.is_inherited, s.family, s.is_deleted, s.depth, s.created, s.is_ours, s.native
        FROM spent p JOIN sessions s ON s.id = p.session WHERE p.token IN (SELECT value FROM json_each(?))
        """,
    inherit="UPDATE spent SET is_inherited = ? WHERE session = ? AND token = ?",
    sessions="SELECT id FROM sessions",
    sums=f"""
        SELECT session, is_inherited, model, sum(cost), count(*) - count(cost),
        sum(CASE WHEN is_reported THEN cost END), {_SUMS} FROM spent
        WHERE session IN (SELECT value FROM json_each(?)) GROUP BY session, is_inherited, model
        """,
    put_sums="""
        UPDATE sessions SET own = ?, cost = ?, unpriced = ?,
        inherited = CASE WHEN before <> '' THEN before ELSE ? END WHERE id = ?
        """,
    subagents="""
        SELECT id, is_ours, agent, native, parent, own, subagents FROM sessions
        WHERE parent IS NOT NULL OR subagents <> '' OR native IN (SELECT parent FROM sessions)
        """,
    put_subagents="UPDATE sessions SET subagents = ? WHERE id = ?",
    totals="""
        SELECT s.id, s.totals, c.id FROM sessions s
        LEFT JOIN sessions c ON s.copy_of = c.native AND c.is_ours AND c.origin = s.origin
        WHERE s.totals <> '' AND NOT s.is_ours
        """,
    booked=f"""
        SELECT {_SUMS}, sum(CASE WHEN is_reported THEN cost END) FROM spent
        WHERE session = ? AND is_total AND (? IS NULL OR model = ?)
        """,
    spend=f"""
        INSERT OR IGNORE INTO spent (session, step, token, at, model, is_reported, is_total, cost, {_COUNTS})
        VALUES ({", ".join("?" * (8 + len(COUNTS)))})
        """,
    drop_spent="DELETE FROM spent WHERE session = ? AND step BETWEEN ? AND ?",
    drop_quarters="DELETE FROM quarters WHERE session = ?",
    add_quarters=f"""
        INSERT INTO quarters (session, quarter, model, requests, cost, unpriced, {_COUNTS})
        SELECT session, at / {QUARTER_MS}, model, count(*), coalesce(sum(cost), 0), count(*) - count(cost), {_SUMS}
        FROM spent WHERE session = ? AND NOT is_inherited GROUP BY 1, 2, 3
        """,
    unpriced=f"SELECT session, token, at, model, is_total, {_COUNTS} FROM spent WHERE cost IS NULL",
    put_cost="UPDATE spent SET cost = ? WHERE session = ? AND token = ?",
    docs="SELECT id, step, entry, hash FROM docs WHERE session = ?",
    put_session="UPDATE sessions SET {} WHERE id = ?",
    column="{} = ?",
    flag="INSERT OR IGNORE INTO meta (key, value) VALUES (?, 1)",
)


class SqliteLedger:
    """See `Ledger`."""

    sql = STATEMENTS

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See `Ledger.rows`."""
        given = [str(value) if type(value) is list else value for value in values]  # pyright: ignore[reportUnknownArgumentType]
        return self.db.execute(sql, given).fetchall()  # pyright: ignore[reportArgumentType]

    def run(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """See `Ledger.run`."""
        self.db.executemany(sql, rows)  # pyright: ignore[reportArgumentType]

    def get(self, key: str) -> Any:
        """See `Ledger.get`."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def note(self, key: str, value: object) -> None:
        """See `Ledger.note`."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))  # pyright: ignore[reportArgumentType]

    def drop(self, key: str) -> None:
        """See `Ledger.drop`."""
        self.db.execute("DELETE FROM meta WHERE key = ?", (key,))
