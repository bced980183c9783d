"""Every session on this machine, ours and other agents', as answers: which there are, what was said, what it cost.

A query that finds nothing changed imports little: formats, stores and prices are loaded only when something has to be
read.
"""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

from turnlog.catalog.ask.listing import CONVERSATION, now_ms, sessions_shown
from turnlog.catalog.index.cards import merged, merged_lines
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.sqlite.damage import Damaged, is_damage
from turnlog.catalog.location import database_for, location_of
from turnlog.catalog.serialized import serialized, unless_cancelled
from turnlog.catalog.upkeep import LocalUpkeep, LockTimeout
from turnlog.catalog.values import Card, ListingRow, Standing, Synced, TokenSums
from turnlog.catalog.waiter import PatientLock
from turnlog.errors import Invalid
from turnlog.machine.folder import workspace_path
from turnlog.machine.location import is_shared
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo
    from types import TracebackType
    from typing import Concatenate, ParamSpec, TypeVar

    from turnlog.catalog.answer import FoundPage, Hits, Spending
    from turnlog.catalog.ask.query import Query
    from turnlog.session import Home
    from turnlog.store.capability import TableConnection

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

__all__ = ["Card", "Catalog", "ListingRow", "Standing", "Synced", "TokenSums"]

FRESH_S = 1.0
"""How long a check of the disk is valid."""


class Catalog:
    """An index that can be rebuilt at any time. Each query checks what has changed, reads that, and answers.

    A catalog may stay open and be queried from any number of threads. A query checks the disk unless that was done in
    the last `fresh_for` seconds; `sync` checks at once. A home that was passed in is left open. Queries can be
    cancelled: see `turnlog.catalog.waiter`.

    `progress` is called with the current activity, the bytes done and the bytes in total. `agents` includes
    other agents' sessions of this user on this machine; the default is no for a database and for a tenant. With
    `deferred`, another process reads if much is new; `at_end` starts that process when this one exits. Answers then
    cover what was read so far, and a glance at the newest of the rest; see `standing`. `patience_s` limits the wait for
    another writer; after that, answers come from the index in its present state, and `is_behind` is true.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | Home | None = None,
        *,
        agents: bool | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        fresh_for: float = FRESH_S,
        deferred: bool = False,
        at_end: bool = False,
        patience_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mutex = PatientLock()
        self._given = None if location is None or isinstance(location, (str, os.PathLike)) else location
        self._home = self._given
        self._location = location_of(location)
        self._is_shared = is_shared(self._location)
        """Whether our own sessions are in a store without files."""
        is_own = not self._is_shared and (self._given is None or self._given.tenant_name is None)
        self._agents = is_own if agents is None else agents
        self._progress = progress
        self._fresh_for, self._clock = fresh_for, clock
        self._is_closed = False
        self.is_behind = False
        """Whether the last check of the disk was given up: another process was busy for too long."""
        self._looked_at: float | None = None
        """When the disk was last checked."""
        database = database_for(self._given, self._location, agents=self._agents)
        self._local = LocalUpkeep(
            database, self._location, self._open_home, progress, agents=self._agents, deferred=deferred,
            at_end=at_end, patience_s=patience_s,
        )  # fmt: skip
        self._server: TableConnection | None = None
        """The connection to the tables of the index, if our own sessions are in a database."""

    @property
    def path(self) -> str:
        """The path of the index; `:memory:` if no disk has room for it."""
        return self._local.database.path

    @property
    def is_partial(self) -> bool:
        """Whether the last answer covered only a part, while another process reads the rest: see `standing`."""
        return self._local.glanced is not None

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the index. Every later query raises `Invalid`."""
        with self._mutex:
            self._is_closed = True
            self._local.close()
            self._looked_at = None
            if self._server is not None:
                self._server.close()
                self._server = None
            if self._home is not None and self._home is not self._given:
                self._home.close()
                self._home = None

    def _open_home(self) -> Home:
        if self._home is None:
            from turnlog.session import open_home

            self._home = open_home(self._location)
        return self._home

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise Invalid("this catalog is closed", hint="make another one")

    def refresh(self, *, at_once: bool = False) -> None:
        """Check what has changed and read it, unless that was done a moment ago. Every query calls this itself."""
        with self._mutex:
            self._refuse_closed()
            is_fresh = self._looked_at is not None and self._clock() - self._looked_at < self._fresh_for
            if is_fresh and not at_once:
                return
            try:
                with self._local.impatient():
                    self.sync()
            except LockTimeout:
                self._looked_at, self.is_behind = self._clock(), True

    def sync(self) -> Synced:
        """Check what has changed, and read it."""
        with self._mutex:
            self._refuse_closed()
            synced = self._local.sync(self._ask_server if self._is_shared else None)
            self._looked_at, self.is_behind = self._clock(), False
            return synced

    def _tables(self) -> TableConnection | None:
        """The connection to the tables that the store has for an index; None if the index is local."""
        from turnlog.store.capability import KeepTables, ability

        if self._server is None and (database := ability(interior(self._open_home()).store, KeepTables)) is not None:
            self._server = database.dedicated("catalog")
        return self._server

    def _ask_server(self, here: Synced) -> Synced:
        """Index what is new in sessions that are not files, in the tables of their database if it has any."""
        from turnlog.catalog.index.postgres.engine import PostgresEngine
        from turnlog.catalog.index.reconcile import reconcile
        from turnlog.catalog.read.server import catch_up

        store, server = interior(self._open_home()).store, self._tables()
        if server is None:
            return self._local.read_store(store, here)
        there = catch_up(server, store, self._progress, self._local.waiting())
        if self._agents:
            self._local.update_marks(store)
            reconcile(self._local.database, PostgresEngine(server), self._local.waiting)
        return Synced(
            here.sessions + there.sessions,
            here.read + there.read,
            here.read_bytes + there.read_bytes,
            here.gone + there.gone,
            is_rebuilt=here.is_rebuilt,
        )

    def complete(self) -> None:
        """Read everything before this returns, even if another process has begun."""
        with self._mutex:
            self._refuse_closed()
            self._local.complete()
            self.sync()

    def _make(self, workspace: str) -> None:
        """Index everything in slices, for the background process; `workspace` is where its user stands."""
        with self._mutex:
            self._refuse_closed()
            self._local.index_in_slices(workspace)

    def rebuild(self) -> Synced:
        """Discard the index, and read everything again."""
        with self._mutex:
            self._refuse_closed()
            self._looked_at = None
            self._local.replace_index()
            return self.sync()

    def _repair(self, work: Callable[[], _T]) -> _T:
        """Replace the damaged index, read everything again, and call `work`."""
        self._local.replace_damaged_index()

        def again() -> _T:
            self.sync()
            return work()

        return self._local.repairing(again)

    def forget_purged(self) -> None:
        """Remove purged sessions from the files of the catalog. Nothing new is read."""
        with self._mutex:
            self._refuse_closed()
            # A session in a store that has neither files nor tables for an index is only missed by comparing.
            if self._is_shared and (not self._agents or self._tables() is None):
                self._local.repairing(lambda: self._ask_server(Synced(0, 0, 0, 0, is_rebuilt=False)))
            self._local.forget_purged()
            self._looked_at = None

    def _answer(self, work: Callable[[], _T]) -> _T:
        """Refresh, and call `work`; if the index is found damaged, call it again after replacing that."""

        def answer() -> _T:
            return unless_cancelled(work, self._local.database.set_cancel_check)

        with self._mutex:
            try:
                self.refresh()
                return answer()
            except (Damaged, sqlite3.DatabaseError) as error:
                if not is_damage(error):
                    raise
            return self._repair(answer)

    def _indexes(self) -> list[Index]:
        """The indexes to query."""
        indexes = self._local.indexes
        if self._server is not None:
            from turnlog.catalog.index.postgres.engine import PostgresEngine

            indexes.append(Index(PostgresEngine(self._server)))
        return [Index(index.engine, self._open_home) for index in indexes]

    @serialized
    def cards(
        self,
        query: str | Query = "",
        *,
        workspace: str | os.PathLike[str] | None = None,
        everything: bool = False,
        deleted: bool = False,
        conversations: bool = False,
        limit: int | None = None,
    ) -> list[Card]:
        """The sessions that match a query, newest first.

        Without `everything`: no subagents, hidden or archived ones, and not both a session and its copy. With
        `deleted`: only those in the trash; with `conversations`: only those in which something was said.
        """
        if limit is not None and limit < 0:
            raise Invalid(f"a list of {limit} sessions", hint="at least 0")
        parts: list[list[Card]] = []
        for index in self._indexes():
            condition = sessions_shown(index, query, workspace, everything=everything, deleted=deleted)
            condition = condition.and_(CONVERSATION) if conversations else condition
            parts.append(index.cards(condition, limit=limit))
        return merged(parts)[:limit]

    @serialized
    def lines(
        self,
        query: str = "",
        *,
        workspace: str | os.PathLike[str] | None = None,
        everything: bool = False,
        deleted: bool = False,
    ) -> list[ListingRow]:
        """The sessions of `cards` as rows of a listing; faster."""
        return merged_lines(
            [
                index.listing(sessions_shown(index, query, workspace, everything=everything, deleted=deleted))
                for index in self._indexes()
            ]
        )

    @serialized
    def find(self, name: str, *, deleted: bool = False) -> Card:
        """The session that a name denotes.

        It is an id, `agent:id`, the beginning of either or of a handle, `latest`, `@` for the newest of this folder,
        or `@-` for the one before.
        """
        from turnlog.catalog.ask.naming import find

        if self._local.glanced is not None:
            self._local.glanced.look_for(name)
        return find(self._indexes(), name, workspace_path("."), deleted=deleted)

    @serialized
    def standing(self) -> Standing:
        """How many sessions were read, and how many are still to be."""
        from turnlog.catalog.standing import standing

        return standing(self._indexes(), self._local.glanced)

    @serialized
    def ids(self) -> list[str]:
        """The ids of all sessions, from which an abbreviated id has to differ."""
        first, *others = (index.ids() for index in self._indexes())
        return [*first, *(id for part in others for id in set(part).difference(first))]

    @serialized
    def search(
        self,
        query: str,
        *,
        workspace: str | os.PathLike[str] | None = None,
        limit: int = 20,
        before: int | None = None,
    ) -> Hits:
        """The places that have these words, newest first; `before` is the `next` of the previous page."""
        from turnlog.catalog.ask.search import search

        folder = None if workspace is None else workspace_path(workspace)
        return search(self._indexes(), query=query, workspace=folder, limit=limit, before=before, now_ms=now_ms())

    @serialized
    def going(self, within_days: float = 7) -> dict[str, int]:
        """How many sessions each agent will delete within this many days, unless they are used."""
        from turnlog.catalog.watch.limits import limits

        if not self._local.has_index:
            return {}  # asking the agents would take longer than the first answer may
        day_ns, now = 86_400_000_000_000, now_ms() * 1_000_000
        ends = {agent: now - int((days - within_days) * day_ns) for agent, days in limits().items()}
        untouched = {agent: self._local.untouched(agent, end) for agent, end in ends.items()}
        return {agent: number for agent, number in untouched.items() if number}

    @serialized
    def gone(self) -> dict[str, int]:
        """How many sessions of each agent are deleted, and still counted."""
        return {agent: number for index in self._local.indexes for agent, number in index.gone().items()}

    @serialized
    def found(
        self,
        query: str,
        *,
        workspace: str | os.PathLike[str] | None = None,
        limit: int = 10,
        page: int = 1,
        sort: str = "time",
        counted: int = 5_000,
    ) -> FoundPage:
        """The matches by session: the newest places of each, their total number, and near matches if there are none.

        `sort` is `time` (newest first) or `relevance` (titles, prompts, answers, tools). A limited number of places is
        counted; beyond it, `is_more` is set.
        """
        from turnlog.catalog.ask.paging import found

        folder = None if workspace is None else workspace_path(workspace)
        return found(
            self._indexes(), query=query, workspace=folder, limit=limit, page=page, sort=sort, counted=counted,
            now_ms=now_ms(),
        )  # fmt: skip

    @serialized
    def usage(
        self,
        query: str | Query = "",
        *,
        by: str = "day",
        workspace: str | os.PathLike[str] | None = None,
        timezone: tzinfo | None = None,
    ) -> list[Spending]:
        """Spending by day, another of `usage.GROUPS`, `label:NAME` or `month,model`; the last item is the total."""
        from turnlog.catalog.ask.usage import usage

        folder, now, home = None if workspace is None else workspace_path(workspace), now_ms(), self._open_home
        return usage(self._indexes(), query=query, by=by, workspace=folder, timezone=timezone, now_ms=now, home=home)

    @serialized
    def ask(self, question: Callable[Concatenate[Sequence[Index], _P], _T], *args: _P.args, **more: _P.kwargs) -> _T:
        """Run one of the queries in `turnlog.catalog.ask`: `detail`, `blocks`, `usage_by_two`, `recall`."""
        return question(self._indexes(), *args, **more)
