"""Keeps the index of this machine in step with what lies on its disk."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from turnlog.catalog.index.index import Index
from turnlog.catalog.index.sqlite.database import IN_MEMORY, Damaged, Database, MemoryDatabase, remove_old, whole
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.watchlist import OURS, Watchlist
from turnlog.catalog.values import PRICES, Synced
from turnlog.catalog.watch import homes
from turnlog.catalog.watch.sweep import Changes, compared, purged, sweep
from turnlog.errors import OutOfSpace, Unavailable
from turnlog.layout import HOME_FILE, LAYOUT_LINE, SESSIONS, TRASH
from turnlog.machine.environment import environment, user_folder
from turnlog.machine.folder import workspace_path
from turnlog.machine.pricelist import stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.session import Home
    from turnlog.store import Store

_TRIES = 3


class LocalUpkeep:
    """Looks what has changed, and reads that into the index. `folder` is the home of ours, where it is one."""

    def __init__(
        self,
        database: Database,
        folder: str | None,
        home: Callable[[], Home],
        progress: Callable[[str, int, int], None] | None,
        *,
        agents: bool,
    ) -> None:
        self.database = database
        self._folder = folder
        self._home = home
        self._progress = progress
        self._agents = agents

    @property
    def index(self) -> Index:
        """As it is."""
        return Index(SqliteEngine(self.database.connection))

    def waiting(self) -> None:
        """Somebody else is at it."""
        if self._progress is not None:
            self._progress("another turnlog is indexing", 0, 0)

    def sync(self) -> Synced:
        """Look what has changed since, and read it."""
        told = ""
        if self._folder is not None:
            remove_old(self._folder)
        for _ in range(_TRIES):
            try:
                return self._sync()
            except OutOfSpace:
                self._into_memory()
            except Damaged as error:
                told = str(error)
                self.throw_away()
        raise Unavailable(f"{self.database.path} is damaged again and again: {told}", hint="is the disk failing?")

    def take_in(self, store: Store, here: Synced) -> Synced:
        """Read what is new in our sessions in a store that keeps no files; gives that with what was read before."""
        if self.database.path != IN_MEMORY and not os.path.exists(self.database.path):
            return here
        from turnlog.catalog.read.indexer import Indexer

        with self.database.lock(self.waiting):
            indexer = Indexer(self.database, self._home, self._progress)
            changes = compared(Watchlist(self.database.connection), store)
            if changes:
                indexer.run(changes)
        read, read_bytes, gone = (
            here.read + indexer.read,
            here.read_bytes + indexer.read_bytes,
            here.gone + indexer.gone,
        )
        return Synced(self.index.count(), read, read_bytes, gone, is_rebuilt=here.is_rebuilt)

    def _into_memory(self) -> None:
        """For as long as this is open: a disk that is full is no reason not to answer."""
        self.database.close()
        self.database = MemoryDatabase()

    def throw_away(self) -> None:
        """An empty one, unless somebody else made it meanwhile."""
        try:
            self._throw_away()
        except OutOfSpace:
            self._into_memory()

    def _throw_away(self) -> None:
        with self.database.lock(self.waiting):
            if self.database.is_current or not os.path.exists(self.database.path):
                self.database.make()
                return
            self.database.close()
            try:
                _ = self.database.connection
            except Damaged:
                self.database.make()  # who made it was stopped before anything was in it

    def forget_purged(self) -> None:
        """What was removed for good leaves the file, and nothing new is read into it."""
        if not os.path.exists(self.database.path):
            return
        from turnlog.catalog.read.indexer import Indexer

        with self.database.lock(self.waiting):
            try:
                gone = purged(Watchlist(self.database.connection))
                Indexer(self.database, self._home, self._progress).run(gone)
            except (Damaged, sqlite3.DatabaseError):
                self.database.make()

    def _check_home(self, folder: str) -> None:
        """A home that this version cannot read says so, whether there is anything new in it or not."""
        try:
            with open(os.path.join(folder, HOME_FILE), "rb") as file:
                layout = file.read(1000)
        except FileNotFoundError:
            return
        except OSError:
            layout = b""
        if layout != LAYOUT_LINE:
            self._home()

    def _sync(self) -> Synced:
        if self._folder is not None:
            self._check_home(self._folder)
        if not self.database.is_current:
            self.database.close()
        version, changes = -1, None
        try:
            version = self.database.version
            places = self._remembered()
            changes = None if places is None or self.database.is_unfinished else self._sweep(places)
        except Damaged:
            changes = None  # it is looked at again when nobody else is at it
        if changes is not None and not changes and self.database.noted(PRICES) == stamp():
            return Synced(self.index.count(), 0, 0, 0, is_rebuilt=False)
        with self.database.lock(self.waiting):
            return self._catch_up(version, changes)

    def _catch_up(self, version: int, found: Changes | None) -> Synced:
        """Read what has changed. Nobody else writes meanwhile; `found` holds if nobody did since that version."""
        from turnlog.catalog.index.notes import note
        from turnlog.catalog.read.indexer import Indexer

        if not self.database.is_current:
            self.database.close()
        try:
            places = self._remembered()
        except Damaged:
            self.database.make()
            places = None
        if places is None:
            places, told = homes.ask(environment(), user_folder())
            with self.database.writing() as db:
                note(SqliteEngine(db), homes.key(), told)
        is_same = found is not None and self.database.version == version
        changes = found if found is not None and is_same else self._sweep(places)
        indexer = Indexer(self.database, self._home, self._progress)
        indexer.run(changes)
        is_new, self.database.is_new = self.database.is_new, False
        return Synced(self.index.count(), indexer.read, indexer.read_bytes, indexer.gone, is_rebuilt=is_new)

    def _remembered(self) -> list[tuple[str, str]] | None:
        """Where the agents keep their sessions; None if they have to be asked."""
        if not self._agents:
            return []
        with whole():
            return homes.remembered(self.database.noted(homes.key()), environment(), user_folder())

    def _sweep(self, agents: list[tuple[str, str]]) -> Changes:
        own = [] if self._folder is None else [(OURS, os.path.join(self._folder, name)) for name in (SESSIONS, TRASH)]
        places = own + homes.here(agents, workspace_path("."))
        with whole():
            return sweep(Watchlist(self.database.connection), places, agents=self._agents)
