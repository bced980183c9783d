"""Keeps the index of this machine up to date with its disk."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from turnlog.catalog.index.index import Index
from turnlog.catalog.index.notes import MAKING, MARKS_END, PRICES_OF, drop_note, get_note, has_note, set_note
from turnlog.catalog.index.sqlite.damage import Damaged, is_damage, reporting_damage
from turnlog.catalog.index.sqlite.database import IN_MEMORY, Database, MemoryDatabase
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.indexfile import has_room, remove_old
from turnlog.catalog.index.sqlite.watchlist import OURS, Watchlist
from turnlog.catalog.values import Synced
from turnlog.catalog.waiter import still_wanted
from turnlog.catalog.watch import homes
from turnlog.catalog.watch.sweep import Changes, compared, purged, sweep
from turnlog.errors import OutOfSpace, Unavailable
from turnlog.layout import SESSIONS, TRASH
from turnlog.log.ids import MARKS
from turnlog.machine.environment import environment, user_folder
from turnlog.machine.folder import workspace_path
from turnlog.machine.location import folder_of
from turnlog.machine.modules import quick_imports
from turnlog.machine.pricelist import stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import TypeVar

    from turnlog.catalog.glance.index import GlanceIndex
    from turnlog.catalog.read.helper import Helper
    from turnlog.catalog.read.indexer import Indexer
    from turnlog.session import Home
    from turnlog.store import Store

    _T = TypeVar("_T")

_TRIES = 3
AT_ONCE = 8 << 20
"""The maximum number of bytes read before an answer; more is read by another process, if allowed."""
_FIRST, _SLICE, _LARGE_SLICE = 8 << 20, 64 << 20, 256 << 20
"""How many bytes are read in one portion: first, in the background, and while holding the lock throughout."""
_PAUSE_S = 0.1


class LockTimeout(Exception):
    """Another process held the lock for longer than a question may wait."""


class LocalUpkeep:
    """Checks what has changed, and reads it into the index. With `deferred`, another process may read it."""

    def __init__(
        self,
        database: Database,
        location: str,
        home: Callable[[], Home],
        progress: Callable[[str, int, int], None] | None,
        *,
        agents: bool,
        deferred: bool,
        at_end: bool = False,
        patience_s: float | None = None,
    ) -> None:
        self._patience_s = patience_s
        self._limit_s: float | None = None
        """The limit on waiting for another writer that applies now."""
        self.database = database
        self._location = location
        self._folder = folder_of(location)
        self._home = home
        self._progress = progress
        self._agents = agents
        self._deferred = deferred and agents
        self._at_end = at_end
        self._workspace = ""
        self.glanced: GlanceIndex | None = None
        """A glance at what is not read yet, if another process reads it."""

    @property
    def has_index(self) -> bool:
        """Whether there is an index to answer from, and not only a glance."""
        return self.glanced is None or self.glanced.has_main_index

    @property
    def indexes(self) -> list[Index]:
        """The indexes to query."""
        if self.glanced is None:
            return [self.index]
        return [self.index, self.glanced.index] if self.glanced.has_main_index else [self.glanced.index]

    @property
    def index(self) -> Index:
        """The index in its present state."""
        return Index(self._engine)

    @property
    def _engine(self) -> SqliteEngine:
        return SqliteEngine(self.database.connection, self.database.terms)

    def untouched(self, agent: str, since_ns: int) -> int:
        """The number of known sessions of an agent that were not written to since a time."""
        if self.glanced is not None and not self.glanced.has_main_index:
            return 0
        return Watchlist(self.database.connection).untouched(agent, since_ns)

    @contextmanager
    def impatient(self) -> Generator[None]:
        """Raise `LockTimeout` in the block after waiting for `patience_s`, if there is an index to answer from."""
        self._limit_s = self._patience_s
        try:
            yield
        finally:
            self._limit_s = None

    def waiting(self) -> Callable[[], None]:
        """A function to call repeatedly while another process holds the lock. The time limit starts now."""
        since, limit_s = time.monotonic(), self._limit_s

        def wait() -> None:
            still_wanted()
            if limit_s is not None and time.monotonic() - since > limit_s and self.database.is_current:
                raise LockTimeout
            if self._progress is not None:
                self._progress("another turnlog is indexing", 0, 0)

        return wait

    def sync(self, then: Callable[[Synced], Synced] | None = None) -> Synced:
        """Check what has changed, and read it; if that is much and may be deferred, only take a glance.

        `then` continues with what is not on this disk; if it finds damage, everything is done again.
        """
        if self._folder is not None:
            remove_old(self._folder)
        return self.repairing(self._sync if then is None else lambda: then(self._sync()))

    def complete(self) -> Synced:
        """Read everything, newest first. Another indexing process continues afterwards."""
        return self.repairing(self._complete)

    def _complete(self) -> Synced:
        read = read_bytes = gone = 0
        with self.database.lock(self.waiting()), self._helper() as helper:
            for most in _slices(_LARGE_SLICE):
                indexer, is_last = self._slice(most, helper)
                read, read_bytes, gone = read + indexer.read, read_bytes + indexer.read_bytes, gone + indexer.gone
                if is_last:
                    break
        self._drop_glance()
        return self._synced(read, read_bytes, gone)

    def _synced(self, read: int, read_bytes: int, gone: int) -> Synced:
        is_rebuilt, self.database.is_new = self.database.is_new, False
        return Synced(self.index.count(), read, read_bytes, gone, is_rebuilt=is_rebuilt)

    def _drop_glance(self) -> None:
        if self.glanced is not None:
            self.glanced.close()
            self.glanced = None

    def close(self) -> None:
        """Close the index, and the glance if there is one."""
        self._drop_glance()
        self.database.close()

    def index_in_slices(self, workspace: str) -> None:
        """Read everything in slices, for the background process; other processes get the lock between slices."""
        self._workspace = workspace
        with self._helper() as helper:
            for most in _slices(_SLICE):
                with self.database.lock():
                    _, is_last = self._slice(most, helper)
                if is_last:
                    return
                time.sleep(_PAUSE_S)

    def repairing(self, work: Callable[[], _T]) -> _T:
        """Call `work`, and call it again after replacing the index if that is found damaged."""
        reason = ""
        for _ in range(_TRIES):
            try:
                return work()
            except OutOfSpace:
                self._into_memory()
            except (Damaged, sqlite3.DatabaseError) as error:
                if not is_damage(error):
                    raise
                reason = str(error)
                self.replace_damaged_index()
        raise Unavailable(f"{self.database.path} is damaged again and again: {reason}", hint="is the disk failing?")

    def read_store(self, store: Store, here: Synced) -> Synced:
        """Read what is new in our sessions in a store without files. Returns `here` with that added."""
        if self.database.path != IN_MEMORY and not os.path.exists(self.database.path):
            return here
        with self.database.lock(self.waiting()):
            indexer = self._indexer()
            changes = compared(Watchlist(self.database.connection), store)
            if changes:
                indexer.run(changes)
        read, read_bytes = here.read + indexer.read, here.read_bytes + indexer.read_bytes
        return Synced(self.index.count(), read, read_bytes, here.gone + indexer.gone, is_rebuilt=here.is_rebuilt)

    def update_marks(self, store: Store) -> None:
        """Update the marks of other agents' sessions from a home in a database."""
        listed = next(iter(store.listing(ids=[MARKS])), None)
        now = "" if listed is None or listed.last is None else f"{listed.first} {listed.last.id}"
        if now == (get_note(self._engine, MARKS_END) or ""):
            return
        with self.database.lock(self.waiting()):
            self._indexer().update_marks()
            with self.database.writing() as db:
                set_note(SqliteEngine(db), MARKS_END, now)

    def _indexer(self, helper: Helper | None = None) -> Indexer:
        with quick_imports():
            from turnlog.catalog.read.indexer import Indexer

        return Indexer(self.database, self._location if self._agents else None, self._home, self._progress, helper)

    def _into_memory(self) -> None:
        """Continue with an index in memory until this is closed: queries are answered even if the disk is full."""
        self.database.close()
        self.database = MemoryDatabase()

    def replace_index(self) -> None:
        """Replace the index with an empty one."""
        try:
            with self.database.lock(self.waiting()):
                self.database.make()
        except OutOfSpace:
            self._into_memory()

    def replace_damaged_index(self) -> None:
        """Replace a damaged index with an empty one, unless another process has done so."""
        try:
            self._replace_damaged_index()
        except OutOfSpace:
            self._into_memory()

    def _replace_damaged_index(self) -> None:
        with self.database.lock(self.waiting()):
            if self.database.is_current or not os.path.exists(self.database.path):
                self.database.make()
                return
            self.database.close()
            try:
                _ = self.database.connection
            except Damaged:
                self.database.make()  # the process that created it was stopped before writing anything

    def forget_purged(self) -> None:
        """Remove purged sessions from the file. Nothing new is read."""
        if not os.path.exists(self.database.path):
            return
        with self.database.lock(self.waiting()):
            try:
                gone = purged(Watchlist(self.database.connection))
                self._indexer().run(gone)
            except (Damaged, sqlite3.DatabaseError) as error:
                if not is_damage(error):
                    raise
                self.database.make()

    def _sync(self) -> Synced:
        if self._folder is not None and not homes.has_known_layout(self._folder):
            self._home()  # raises the error of a home that this version cannot read, even if nothing in it is new
        if not self.database.is_current:
            self.database.close()
        self._drop_glance()
        version, changes, is_there, is_making = None, None, False, False
        try:
            version = self.database.version
            is_making, is_there = self._is_making(), True
            places = self._remembered()
            if places is not None and (is_making or not self.database.is_unfinished):
                changes = self._sweep(places)
        except Damaged:
            is_there = is_making = False  # it is checked again under the lock
        if changes is not None and not changes and not is_making and get_note(self._engine, PRICES_OF) == stamp():
            return Synced(self.index.count(), 0, 0, 0, is_rebuilt=False)
        if self._deferred:
            self.glanced = self._defer(changes, is_there=is_there, is_making=is_making)
            if self.glanced is not None:
                return Synced(sum(index.count() for index in self.indexes), 0, 0, 0, is_rebuilt=False)
        if is_making:
            return self.complete()
        with self.database.lock(self.waiting()):
            return self._catch_up(version, changes)

    def _is_making(self) -> bool:
        with reporting_damage():
            return has_note(self._engine, MAKING)

    def _defer(self, changes: Changes | None, *, is_there: bool, is_making: bool) -> GlanceIndex | None:
        """If there is much to read, start the background process and take a glance; None if it is to be read now."""
        watchlist = Watchlist(self.database.connection) if is_there else None
        grown = 0
        if watchlist is not None and changes is not None:
            grown = sum(watchlist.growth(file.id, file.path) for file in changes.files)
            if not is_making and not changes.roots and grown <= AT_ONCE:
                return None  # the usual case: only a session has grown
        from turnlog.catalog import background
        from turnlog.catalog.glance.index import GlanceIndex, surveyed

        if self.database.path == IN_MEMORY or not background.is_allowed():
            return None
        workspace = workspace_path(".")
        survey = surveyed(None if changes is None else changes.roots, watchlist, self._own_places(), workspace)
        bytes_to_read = survey.size_bytes + grown
        if not is_making and bytes_to_read <= AT_ONCE:
            return None
        if not has_room(self.database.path, bytes_to_read):
            return None
        if not background.start(self.database.path, self._folder or self._location, at_end=self._at_end):
            return None
        return GlanceIndex(survey, workspace, self._home, has_main_index=is_there)

    def _prepared(self) -> list[tuple[str, str]]:
        """Make the catalog writable. Returns where the agents keep their sessions. Only under the lock."""
        try:
            _ = self.database.connection
            places = self._remembered()
        except Damaged:
            self.database.make()
            places = self._remembered()
        if places is None:
            places, encoded = homes.ask_formats(environment(), user_folder())
            with self.database.writing() as db:
                set_note(SqliteEngine(db), homes.key(), encoded)
        return places

    def _catch_up(self, version: tuple[int, int] | None, swept: Changes | None) -> Synced:
        """Read what has changed. Only under the lock; `swept` is used if nothing was written since `version`.

        What was swept names files and folders by their numbers in the index, so it is void if that was replaced.
        """
        places = self._prepared()
        is_same = swept is not None and self.database.version == version
        changes = swept if swept is not None and is_same else self._sweep(places)
        indexer = self._indexer()
        indexer.run(changes)
        return self._synced(indexer.read, indexer.read_bytes, indexer.gone)

    def _helper(self) -> Helper:
        with quick_imports():
            from turnlog.catalog.read.helper import Helper
        return Helper(self._location if self._agents else None)

    def _slice(self, most: int, helper: Helper) -> tuple[Indexer, bool]:
        """Read the newest unread sessions, up to this many bytes. Returns who read, and whether all is read now.

        Only under the lock.
        """
        places = self._prepared()
        with self.database.writing() as db:
            set_note(SqliteEngine(db), MAKING)
        indexer = self._indexer(helper if helper.is_usable else None)
        indexer.run(self._sweep(places), most=most)
        is_last = not indexer.has_unread or not (indexer.read or indexer.gone)
        if is_last:
            indexer.tidy()
            with self.database.writing() as db:
                drop_note(SqliteEngine(db), MAKING)
        return indexer, is_last

    def _remembered(self) -> list[tuple[str, str]] | None:
        """Where the agents keep their sessions; None if they have to be asked."""
        if not self._agents:
            return []
        with reporting_damage():
            return homes.decode(get_note(self._engine, homes.key()), environment(), user_folder())

    def _own_places(self) -> list[tuple[str, str]]:
        names = () if self._folder is None else (SESSIONS, TRASH)
        return [(OURS, os.path.join(self._folder or "", name)) for name in names]

    def _sweep(self, agents: list[tuple[str, str]]) -> Changes:
        places = self._own_places() + homes.resolve(agents, self._workspace or workspace_path("."))
        with reporting_damage():
            return sweep(Watchlist(self.database.connection), places, agents=self._agents)


def _slices(largest: int) -> Iterator[int]:
    most = _FIRST
    while True:
        yield most
        most = min(4 * most, largest)
