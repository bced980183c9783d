"""The queries about sessions in an index. Those about entries and words are methods of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.cards import CARD, CardMaker, ListingColumns
from turnlog.catalog.index.columns import LARGEST
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.ending import UNREAD
from turnlog.catalog.index.where import where
from turnlog.errors import Invalid
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnlog.catalog.index.engine import Engine
    from turnlog.catalog.index.lookup import SpendingQuery
    from turnlog.catalog.values import Card, ListingRow
    from turnlog.session import Home

_ANY = Condition()


class Index:
    """Looks up sessions and entries, in any engine."""

    def __init__(self, engine: Engine, home: Callable[[], Home] | None = None) -> None:
        self.engine = engine
        self._sessions = engine.table("sessions")
        self._home = home
        """The home whose checkpoints show which sessions wrote the lines of commits."""

    def cards(self, sessions: Condition = _ANY, *, limit: int | None = None) -> list[Card]:
        """The cards of sessions, newest first."""
        sql, values = where(self.engine, sessions)
        sql = f"SELECT {CARD} FROM {self._sessions} WHERE {sql} ORDER BY updated DESC, native{_limit_sql(limit)}"
        return list(map(CardMaker().card, self.engine.rows(sql, values)))

    def cards_by_row(self, sessions: Condition, *, limit: int | None = None) -> dict[int, Card]:
        """The same by row."""
        sql, values = where(self.engine, sessions)
        sql = f"SELECT {CARD}, id FROM {self._sessions} WHERE {sql} ORDER BY updated DESC, native{_limit_sql(limit)}"
        maker = CardMaker()
        return {row[-1]: maker.card(row[:-1]) for row in self.engine.rows(sql, values)}

    def cards_of(self, rows: Iterable[int]) -> dict[int, Card]:
        """The cards of these rows."""
        maker, sql = CardMaker(), f"SELECT {CARD}, id FROM {self._sessions} WHERE {self.engine.among_numbers('id')}"
        return {row[-1]: maker.card(row[:-1]) for row in self.engine.rows(sql, (list(rows),))}

    def listing(self, sessions: Condition) -> list[ListingRow]:
        """The sessions of `cards`, as rows of a listing."""
        sql, values = where(self.engine, sessions)
        columns = ListingColumns()
        rows = self.engine.rows(f"SELECT {columns.lines} FROM {self._sessions} WHERE {sql}", values)
        facts = f"SELECT {columns.facts} FROM {self._sessions} WHERE {self.engine.among_numbers('id')}"
        return columns.listing(rows, lambda ids: self.engine.rows(facts, (ids,)))

    def ids(self) -> list[str]:
        """The ids of all sessions."""
        return [native for (native,) in self.engine.rows(f"SELECT native FROM {self._sessions}")]

    def count(self, sessions: Condition = _ANY) -> int:
        """The number of sessions."""
        sql, values = where(self.engine, sessions)
        [(count,)] = self.engine.rows(f"SELECT count(*) FROM {self._sessions} WHERE {sql}", values)
        return count

    def progress(self, sessions: Condition) -> tuple[int, int, int | None]:
        """How many sessions there are, how many of them were read, and when the first began, in ms since 1970."""
        sql, values = where(self.engine, sessions)
        [(count, unread, first)] = self.engine.rows(
            f"SELECT count(*), count(CASE WHEN ending = '{UNREAD}' THEN 1 END), "
            f"min(CASE WHEN created > 0 THEN created END) FROM {self._sessions} WHERE {sql}",
            values,
        )
        return count, count - unread, first

    def gone(self) -> dict[str, int]:
        """The number of sessions of each other agent that are only counted, because their files are gone."""
        sql = f"SELECT agent, count(*) FROM {self._sessions} WHERE is_deleted AND NOT is_ours AND own <> '' GROUP BY 1"
        return dict(self.engine.rows(f"{sql} ORDER BY 2 DESC, 1"))

    def column_by_session(self, column: str) -> dict[int, Any]:
        """One column of every session in which it is not null."""
        sql = f"SELECT id, {column} FROM {self._sessions} WHERE {column} IS NOT NULL"
        return {id: label for id, label in self.engine.rows(sql)}

    def whereabouts(self) -> Iterable[tuple[int, bool, Any, Any, str]]:
        """For every session: row, whether it is ours, folder, file, and the processes that wrote it."""
        return self.engine.rows(f"SELECT id, is_ours, workspace, path, writer FROM {self._sessions}")

    def newest(self, sessions: Iterable[int]) -> dict[int, int]:
        """The last step with text of each session."""
        # One lookup at the end of an index for each session: grouping would read every entry.
        last = f"SELECT max(step) FROM {self.engine.table('docs')} WHERE session = sessions.id"
        sql = f"SELECT id, ({last}) FROM {self._sessions} WHERE {self.engine.among_numbers('id')}"
        return {id: step or 0 for id, step in self.engine.rows(sql, (list(sessions),))}

    def in_state(self, states: frozenset[str]) -> list[int]:
        """The sessions that are in one of these states now."""
        maker = CardMaker()
        rows = self.engine.rows(f"SELECT id, is_ours, ending, writer, updated FROM {self._sessions}")
        return [id for id, *facts in rows if maker.state(*facts) in states]

    def behind_commits(self, revisions: str) -> list[int]:
        """The sessions whose turns wrote lines of these commits, their originals, and their subagents."""
        from turnlog.blame.commit import sessions_behind

        if self._home is None:
            raise Invalid(f"commit:{revisions:.80} needs a home with checkpoints", hint="ask a catalog of a home")
        ours = ("", *sessions_behind(interior(self._home()).store, revisions))
        sessions = self._natives(
            Condition("in", "sessions.native", ours).or_(Condition("in", "sessions.copy_of", ours))
        )
        return [*sessions, *self._natives(Condition("in", "sessions.parent", ("", *sessions.values())))]

    def _natives(self, sessions: Condition) -> dict[int, str]:
        """The ids of these sessions, by row: several files may have a session of one id."""
        sql, values = where(self.engine, sessions)
        return dict(self.engine.rows(f"SELECT id, native FROM {self._sessions} WHERE {sql}", values))

    def spending(self, asked: SpendingQuery) -> list[tuple[Any, ...]]:
        """For each session, day and model: requests, millionths of micro-dollars, unpriced requests, token counts."""
        from turnlog.catalog.index.spending import spending

        return list(spending(self.engine, asked))

    def requests(self, sessions: Condition, models: Condition) -> list[tuple[Any, ...]]:
        """Every request that a session made itself, oldest first: the time, and the columns of `spending`."""
        from turnlog.catalog.index.spending import requests

        return list(requests(self.engine, sessions, models))


def _limit_sql(limit: int | None) -> str:
    return "" if limit is None else f" LIMIT {min(limit, LARGEST)}"
