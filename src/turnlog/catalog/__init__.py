"""Every session on this machine, ours and other agents', as answers: which there are, what was said, what it cost.

Whoever asks and finds nothing changed loads little: formats, stores and prices are imported when something has to be
read.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from turnlog.catalog.ask.listing import CONVERSATION, now_ms, sessions_shown
from turnlog.catalog.index.cards import merged, merged_lines
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.sqlite.database import whole
from turnlog.catalog.question import question
from turnlog.catalog.upkeep import LocalUpkeep, Waited, database_for, location_of
from turnlog.catalog.values import Card, ListingRow, Standing, Synced, TokenSums
from turnlog.catalog.waiter import PatientLock
from turnlog.errors import Invalid
from turnlog.machine.folder import workspace_path
from turnlog.machine.location import is_shared
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo
    from types import TracebackType
    from typing import TypeVar

    from turnlog.catalog.answer import FoundPage, Hits, Spending
    from turnlog.session import Home
    from turnlog.store.capability import TableConnection

    _T = TypeVar("_T")

__all__ = [
    "Card",
    "Catalog",
    "ListingRow",
    "Standing",
    "Synced",
    "TokenSums",
]

FRESH_S = 1.0
"""How long a check of the disk is valid."""


class Catalog:
    """An index that can be made again at any time. Asked something, it looks what has changed, reads that, answers.

    It may stay open and be asked by any number of threads: it looks at the disk when it is asked, if it did not within
    the last `fresh_for` seconds; `sync` looks at once. A home that it is given is left open. What nobody waits for any
    more is given up: see `turnlog.catalog.waiter`.

    `progress` is called with what is being done, how many bytes are done and how many there are. `agents` includes
    other agents' sessions of this user on this machine; the default is no for a database and for a tenant. With
    `deferred`, another process reads if much is new; `at_end` starts that process when this one exits. Answers then
    cover what was read so far, with a glance at the newest of the rest; see `standing`. `patience_s` limits how long to
    wait for another writer; after that, answers come from the index as it is, and `is_behind` is true.
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
        """Whether our own sessions lie where others have theirs."""
        is_own = not self._is_shared and (self._given is None or self._given.tenant_name is None)
        self._agents = is_own if agents is None else agents
        self._progress = progress
        self._fresh_for, self._clock = fresh_for, clock
        self._is_closed = self.is_behind = False
        """Whether the last check of the disk was given up: another process was busy for too long."""
        self._looked_at: float | None = None
        """When the disk was last looked at."""
        database = database_for(self._given, self._location, agents=self._agents)
        self._local = LocalUpkeep(
            database, self._location, self._open_home, progress, agents=self._agents, deferred=deferred,
            at_end=at_end, patience_s=patience_s,
        )  # fmt: skip
        self._server: TableConnection | None = None
        """Where our own sessions are in a database, and so is what is known of them."""

    @property
    def path(self) -> str:
        """The file it lies in; `:memory:` where no disk has room for it."""
        return self._local.database.path

    @property
    def is_partial(self) -> bool:
        """Whether the last answer was of a part, and another process reads the rest: see `standing`."""
        return self._local.glanced is not None

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Whoever asks afterwards gets `Invalid`."""
        with self._mutex:
            self._is_closed = True
            self._local.database.close()
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

    # ── in step with the disk ─────────────────────────────────────────────────────────────────────

    def refresh(self, *, at_once: bool = False) -> None:
        """Look what has changed, unless that was done a moment ago. Every question does that by itself."""
        with self._mutex:
            self._refuse_closed()
            is_fresh = self._looked_at is not None and self._clock() - self._looked_at < self._fresh_for
            if is_fresh and not at_once:
                return
            try:
                self.sync()
                self.is_behind = False
            except Waited:
                self._looked_at, self.is_behind = self._clock(), True

    def sync(self) -> Synced:
        """Look what has changed since, and read it."""
        with self._mutex:
            self._refuse_closed()
            synced = self._local.sync()
            if self._is_shared:
                synced = self._ask_server(synced)
            self._looked_at = self._clock()
            return synced

    def _tables(self) -> TableConnection | None:
        """Where the store keeps what is known of its sessions; None if that is kept here."""
        from turnlog.store.capability import KeepTables, ability

        if self._server is None and (database := ability(interior(self._open_home()).store, KeepTables)) is not None:
            self._server = database.dedicated("catalog")
        return self._server

    def _ask_server(self, here: Synced) -> Synced:
        """Have what is new read in sessions that are no files: into the tables of their database, if it has any."""
        from turnlog.catalog.index.postgres.engine import PostgresEngine
        from turnlog.catalog.index.reconcile import reconcile
        from turnlog.catalog.read.server import catch_up

        store, server = interior(self._open_home()).store, self._tables()
        if server is None:
            return self._local.take_in(store, here)
        there = catch_up(server, store, self._progress, self._local.waiting)
        if self._agents:
            self._local.learn(store)
            with whole():
                reconcile(self._local.database, PostgresEngine(server), self._local.waiting)
        return Synced(
            here.sessions + there.sessions,
            here.read + there.read,
            here.read_bytes + there.read_bytes,
            here.gone + there.gone,
            is_rebuilt=here.is_rebuilt,
        )

    def complete(self) -> None:
        """Read everything that is there before this returns, whoever began with it."""
        with self._mutex:
            self._refuse_closed()
            self._local.complete()
            self.sync()

    def _make(self, workspace: str) -> None:
        """The same for the process that others leave it to: for somebody in that workspace, and to be kept."""
        with self._mutex:
            self._refuse_closed()
            self._local.make(workspace)

    def rebuild(self) -> Synced:
        """Throw it away, and read everything again."""
        with self._mutex:
            self._refuse_closed()
            self._looked_at = None
            self._local.throw_away()
            return self.sync()

    def forget_purged(self) -> None:
        """What was removed for good leaves the files of the catalog, and nothing new is read into them."""
        with self._mutex:
            self._refuse_closed()
            if self._is_shared and (not self._agents or self._tables() is None):
                self._ask_server(Synced(0, 0, 0, 0, is_rebuilt=False))
            self._local.forget_purged()
            self._looked_at = None

    def _heed(self, has_left: Callable[[], bool] | None) -> None:
        self._local.database.heed(has_left)

    # ── questions ─────────────────────────────────────────────────────────────────────────────────

    def _indexes(self) -> list[Index]:
        """Where there is something to be found."""
        indexes = self._local.indexes
        if self._server is not None:
            from turnlog.catalog.index.postgres.engine import PostgresEngine

            indexes.append(Index(PostgresEngine(self._server)))
        return [index.with_home(self._open_home) for index in indexes]

    @question
    def cards(
        self,
        query: str = "",
        *,
        workspace: str | os.PathLike[str] | None = None,
        everything: bool = False,
        deleted: bool = False,
        conversations: bool = False,
        limit: int | None = None,
    ) -> list[Card]:
        """Sessions, the newest first.

        Without `everything`: no subagents, hidden or archived ones, and not both a session and its copy. With
        `deleted`: only those in the trash; with `conversations`: only those in which something was said.
        """
        parts: list[list[Card]] = []
        for index in self._indexes():
            condition = sessions_shown(index, query, workspace, everything=everything, deleted=deleted)
            condition = condition.and_(CONVERSATION) if conversations else condition
            parts.append(index.cards(condition, limit=limit))
        return merged(parts)[:limit]

    @question
    def lines(
        self,
        query: str = "",
        *,
        workspace: str | os.PathLike[str] | None = None,
        everything: bool = False,
        deleted: bool = False,
    ) -> list[ListingRow]:
        """The same as `cards`, with what a listing shows, and quicker."""
        return merged_lines(
            [
                index.listing(sessions_shown(index, query, workspace, everything=everything, deleted=deleted))
                for index in self._indexes()
            ]
        )

    @question
    def find(self, name: str, *, deleted: bool = False) -> Card:
        """The one session that answers to a name.

        That is its id, `agent:id`, the beginning of either or of a handle, `latest`, `@` for the newest of this folder,
        or `@-` for the one before.
        """
        from turnlog.catalog.ask.naming import find

        if self._local.glanced is not None:
            self._local.glanced.look_for(name)
        return find(self._indexes(), name, workspace_path("."), deleted=deleted)

    @question
    def standing(self) -> Standing:
        """How many sessions were read, and how many are still to be."""
        return self._local.standing()

    @question
    def ids(self) -> list[str]:
        """The ids of all there are, from which the beginning of one has to be told."""
        first, *others = (index.ids() for index in self._indexes())
        return [*first, *(id for part in others for id in set(part).difference(first))]

    @question
    def search(
        self,
        query: str,
        *,
        workspace: str | os.PathLike[str] | None = None,
        limit: int = 20,
        before: int | None = None,
    ) -> Hits:
        """Where these words are, the newest first; `before` is the `next` of the page before."""
        from turnlog.catalog.ask.search import search

        place = None if workspace is None else workspace_path(workspace)
        return search(*self._indexes(), query=query, workspace=place, limit=limit, before=before, now_ms=now_ms())

    @question
    def going(self, within_days: float = 7) -> dict[str, int]:
        """How many sessions each agent will delete within this many days, unless they are used."""
        from turnlog.catalog.watch.limits import limits

        if not self._local.is_looked_at:
            return {}  # to ask the agents would take longer than the first answer may
        day_ns = 86_400_000_000_000
        now = now_ms() * 1_000_000
        ends = {agent: now - int((days - within_days) * day_ns) for agent, days in limits().items()}
        untouched = {agent: self._local.untouched(agent, end) for agent, end in ends.items()}
        return {agent: number for agent, number in untouched.items() if number}

    @question
    def gone(self) -> dict[str, int]:
        """How many sessions of each agent are gone, and still counted."""
        return {agent: number for index in self._local.indexes for agent, number in index.gone().items()}

    @question
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
        """The same by session: the newest places of each, how many there are in all, and what comes near if none is.

        `sort` is `time` for the newest first, or `relevance`: titles, prompts, answers, tools. So many places are
        counted; of more it is only said that there are.
        """
        from turnlog.catalog.ask.paging import found

        place = None if workspace is None else workspace_path(workspace)
        return found(
            *self._indexes(), query=query, workspace=place, limit=limit, page=page, sort=sort, counted=counted,
            now_ms=now_ms(),
        )  # fmt: skip

    @question
    def usage(
        self,
        query: str = "",
        *,
        by: str = "day",
        workspace: str | os.PathLike[str] | None = None,
        timezone: tzinfo | None = None,
    ) -> list[Spending]:
        """What was spent, by day, another of `usage.GROUPS`, `label:NAME` or `month,model`; the last one is all."""
        from turnlog.catalog.ask.usage import usage

        place, now, home = None if workspace is None else workspace_path(workspace), now_ms(), self._open_home
        return usage(*self._indexes(), query=query, by=by, workspace=place, timezone=timezone, now_ms=now, home=home)

    @question
    def ask(self, question: Callable[..., _T], *args: object, **more: object) -> _T:
        """One of the questions in `turnlog.catalog.ask`: `detail`, `blocks`, `usage_by_two`, `recall`."""
        return question(self._indexes(), *args, **more)
