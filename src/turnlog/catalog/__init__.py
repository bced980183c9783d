"""Every session on this machine, ours and other agents', as answers: which there are, what was said, what it cost.

Whoever asks and finds nothing changed loads little: formats, stores and prices are imported when something has to be
read.
"""

from __future__ import annotations

import os
import sqlite3
import time
from functools import wraps
from typing import TYPE_CHECKING, cast

from turnlog.catalog.ask.cards import cards_of, lines_of, merged
from turnlog.catalog.ask.naming import find
from turnlog.catalog.index.database import Damaged, Database, place_of, remove_old, whole
from turnlog.catalog.values import Card, Hit, Hits, ListingRow, Spending, Synced, TokenSums
from turnlog.catalog.watch.sweep import OURS, Changes, purged, sweep
from turnlog.errors import Unavailable
from turnlog.machine.environment import default_home, environment, user_folder
from turnlog.machine.folder import absolute, workspace_path
from turnlog.machine.location import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo
    from types import TracebackType
    from typing import Concatenate, ParamSpec, TypeVar

    from turnlog.session import Home
    from turnlog.store.postgres.tables import Tables

    _P = ParamSpec("_P")
    _T = TypeVar("_T")

__all__ = ["Card", "Catalog", "Hit", "Hits", "ListingRow", "Spending", "Synced", "TokenSums"]

_DAMAGE = (11, 26)
"""SQLite's codes for a file that is damaged, and for one that is none of its own."""
_TRIES = 3


def _made_again(question: Callable[Concatenate[Catalog, _P], _T]) -> Callable[Concatenate[Catalog, _P], _T]:
    """A question that is asked once more of a new catalog, should this one turn out to be damaged."""

    @wraps(question)
    def asked(catalog: Catalog, *args: _P.args, **more: _P.kwargs) -> _T:
        try:
            return question(catalog, *args, **more)
        except sqlite3.DatabaseError as error:
            if (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF not in _DAMAGE:
                raise
            catalog.rebuild()
            return question(catalog, *args, **more)

    return asked


class Catalog:
    """An index that can be made again at any time. Asked something, it looks what has changed, reads that, answers.

    `progress` is told what is being done, how many bytes are done and how many there are. With `agents`, it also knows
    what other agents keep on this machine, for whoever runs this; not by default for a database, which has tenants.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] | None = None,
        *,
        agents: bool | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._location = os.fspath(location) if location is not None else default_home()
        self._progress = progress
        kind = kind_of(self._location)
        self._is_on_server = kind == "postgres"
        self._agents = not self._is_on_server if agents is None else agents
        self._folder = absolute(self._location) if kind == "files" else None
        self._database = Database(place_of(self._location, agents=self._agents))
        self._home: Home | None = None
        self._synced: Synced | None = None
        self._tables: Tables | None = None
        """Those in the database, where our own sessions are in one."""

    @property
    def path(self) -> str:
        """The file it lies in."""
        return self._database.path

    @property
    def db(self) -> sqlite3.Connection:
        """For the questions of this room: open, and in step with what is on the disk."""
        if self._synced is None:
            self.sync()
        return self._database.connection

    def _dbs(self) -> list[sqlite3.Connection]:
        """Where there is something to be found."""
        db = self.db
        return [db] if self._tables is None else [db, cast("sqlite3.Connection", self._tables)]

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
        if self._tables is not None:
            self._tables.close()
            self._tables = None
        if self._home is not None:
            self._home.close()
            self._home = None

    # ── in step with the disk ─────────────────────────────────────────────────────────────────────

    def sync(self) -> Synced:
        """Look what has changed since, and read it. Every first question does that by itself."""
        told = ""
        if self._folder is not None:
            remove_old(self._folder)
        for _ in range(_TRIES):
            try:
                self._synced = self._sync()
            except Damaged as error:
                told = str(error)
                with self._database.lock(self._waiting):
                    self._throw_away()
            else:
                if self._is_on_server:
                    self._synced = self._ask_server(self._synced)
                return self._synced
        raise Unavailable(f"{self.path} is damaged again and again: {told}", hint="is the disk failing?")

    def _ask_server(self, here: Synced) -> Synced:
        """Have the database read what is new in the sessions that are there."""
        from turnlog.catalog.index.postgres import catch_up
        from turnlog.catalog.index.reconcile import reconcile
        from turnlog.store.postgres import PostgresStore

        store = cast("PostgresStore", self._open_home().store)
        if self._tables is None:
            self._tables = store.tables()
        there = catch_up(self._tables, store, self._progress, self._waiting)
        if self._agents:
            with whole():
                reconcile(self._database, self._tables, self._waiting)
        return Synced(
            here.sessions + there.sessions,
            here.read + there.read,
            here.read_bytes + there.read_bytes,
            here.gone + there.gone,
            is_rebuilt=here.is_rebuilt,
        )

    def _check_home(self, folder: str) -> None:
        """A home that this version cannot read says so, whether there is anything new in it or not."""
        try:
            with open(os.path.join(folder, "home.json"), "rb") as file:
                layout = file.read(1000)
        except FileNotFoundError:
            return
        except OSError:
            layout = b""
        if layout != _LAYOUT:
            self._open_home().store.ids()

    def rebuild(self) -> Synced:
        """Throw it away, and read everything again."""
        self._synced = None
        with self._database.lock(self._waiting):
            self._throw_away()
        return self.sync()

    def forget_purged(self) -> None:
        """What was removed for good leaves the files of the catalog, and nothing new is read into them."""
        if self._is_on_server and not self._agents:
            self._ask_server(Synced(0, 0, 0, 0, is_rebuilt=False))
        if not os.path.exists(self.path):
            return
        from turnlog.catalog.read.indexer import Indexer

        with self._database.lock(self._waiting):
            try:
                Indexer(self._database, self._open_home, self._progress).run(purged(self._database.connection))
            except (Damaged, sqlite3.DatabaseError):
                self._database.make()
        self._synced = None

    def _sync(self) -> Synced:
        if self._folder is not None:
            self._check_home(self._folder)
        if not self._database.is_current:
            self._database.close()
        version, changes = -1, None
        try:
            version = self._database.version
            homes = self._remembered()
            changes = None if homes is None or self._database.is_unfinished else self._sweep(homes)
        except Damaged:
            changes = None  # it is looked at again when nobody else is at it
        if changes is not None and not changes:
            return Synced(self._count(), 0, 0, 0, is_rebuilt=False)
        with self._database.lock(self._waiting):
            return self._catch_up(version, changes)

    def _catch_up(self, version: int, found: Changes | None) -> Synced:
        """Read what has changed. Nobody else writes meanwhile; `found` holds if nobody did since that version."""
        from turnlog.catalog.read.indexer import Indexer
        from turnlog.catalog.watch import homes

        if not self._database.is_current:
            self._database.close()
        try:
            places = self._remembered()
        except Damaged:
            self._database.make()
            places = None
        if places is None:
            places, told = homes.ask(environment(), user_folder())
            with self._database.writing() as db:
                homes.remember(db, told)
        is_same = found is not None and self._database.version == version
        changes = found if found is not None and is_same else self._sweep(places)
        indexer = Indexer(self._database, self._open_home, self._progress)
        indexer.run(changes)
        is_new, self._database.is_new = self._database.is_new, False
        return Synced(self._count(), indexer.read, indexer.read_bytes, indexer.gone, is_rebuilt=is_new)

    def _throw_away(self) -> None:
        if not self._database.is_current and os.path.exists(self.path):
            self._database.close()
            try:
                _ = self._database.connection
            except Damaged:
                self._database.make()  # who made it was stopped before anything was in it
            return  # somebody else did it meanwhile
        self._database.make()

    def _remembered(self) -> list[tuple[str, str]] | None:
        """Where the agents keep their sessions; None if they have to be asked."""
        from turnlog.catalog.watch import homes

        if not self._agents:
            return []
        with whole():
            return homes.remembered(self._database.connection, environment(), user_folder())

    def _sweep(self, agents: list[tuple[str, str]]) -> Changes:
        from turnlog.catalog.watch import homes

        places = [] if self._folder is None else [(OURS, os.path.join(self._folder, name)) for name in _OWN]
        places += homes.here(agents, workspace_path("."))
        with whole():
            return sweep(self._database.connection, places, agents=self._agents)

    def _count(self) -> int:
        return self._database.connection.execute("SELECT count(*) FROM sessions").fetchone()[0]

    def _waiting(self) -> None:
        if self._progress is not None:
            self._progress("another turnlog is indexing", 0, 0)

    def _open_home(self) -> Home:
        if self._home is None:
            from turnlog.session import open_home

            self._home = open_home(self._location)
        return self._home

    # ── questions ─────────────────────────────────────────────────────────────────────────────────

    @_made_again
    def cards(
        self,
        query: str = "",
        *,
        workspace: str | os.PathLike[str] | None = None,
        everything: bool = False,
        deleted: bool = False,
        limit: int | None = None,
    ) -> list[Card]:
        """Sessions, the newest first.

        Without `everything`: no subagents, hidden or archived ones, and not both a session and its copy. With
        `deleted`: only those in the trash.
        """
        found = [
            cards_of(db, *self._meant(db, query, workspace, everything, deleted), limit=limit) for db in self._dbs()
        ]
        return found[0] if len(found) == 1 else merged(found)[:limit]

    @_made_again
    def lines(
        self,
        query: str = "",
        *,
        workspace: str | os.PathLike[str] | None = None,
        everything: bool = False,
        deleted: bool = False,
    ) -> list[ListingRow]:
        """The same as `cards`, with what a listing shows, and quicker."""
        found = [lines_of(db, *self._meant(db, query, workspace, everything, deleted)) for db in self._dbs()]
        if len(found) == 1:
            return found[0]
        return sorted((line for part in found for line in part), key=lambda line: line.updated_ms or 0, reverse=True)

    def _meant(
        self,
        db: sqlite3.Connection,
        query: str,
        workspace: str | os.PathLike[str] | None,
        everything: bool,
        deleted: bool,
    ) -> tuple[str, list[str | int]]:
        where = ["is_deleted" if deleted else "NOT is_deleted"]
        left_out = dict(_LEFT_OUT)
        params: list[str | int] = []
        if query:
            from turnlog.catalog.ask.search import asks, sessions_where

            meant, params = sessions_where(db, query, _now_ms())
            where += [f"({meant})"] if meant else []
            left_out = {kind: column for kind, column in left_out.items() if not asks(query, kind)}
        if not everything:
            where += left_out.values()
        if workspace is not None:
            where.append("workspace = ?")
            params.append(workspace_path(workspace))
        return " AND ".join(where), params

    @_made_again
    def find(self, name: str, *, deleted: bool = False) -> Card:
        """The one session that answers to a name.

        That is its id, `agent:id`, the beginning of either or of a handle, `latest`, `@` for the newest of this folder,
        or `@-` for the one before.
        """
        return find(self._dbs(), name, workspace_path("."), deleted=deleted)

    @_made_again
    def ids(self) -> list[str]:
        """The ids of all there are, from which the beginning of one has to be told."""
        return [row[0] for db in self._dbs() for row in db.execute("SELECT native FROM sessions")]

    @_made_again
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
        return search(*self._dbs(), query=query, workspace=place, limit=limit, before=before, now_ms=_now_ms())

    @_made_again
    def usage(
        self,
        query: str = "",
        *,
        by: str = "day",
        workspace: str | os.PathLike[str] | None = None,
        timezone: tzinfo | None = None,
    ) -> list[Spending]:
        """What was spent, by day, week, month, session, model, workspace or agent; the last one is all of it."""
        from turnlog.catalog.ask.usage import usage

        place = None if workspace is None else workspace_path(workspace)
        return usage(*self._dbs(), query=query, by=by, workspace=place, timezone=timezone, now_ms=_now_ms())


_OWN = ("sessions", "trash")
_LAYOUT = b'{"layout":1,"packs":1,"ids":1}\n'
_LEFT_OUT = {
    "copied": "NOT is_copied",
    "hidden": "NOT is_hidden",
    "subagent": "parent IS NULL",
    "archived": "NOT is_archived",
}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
