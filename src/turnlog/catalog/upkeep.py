"""Keeps the index of this machine in step with what lies on its disk."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING

from turnlog.catalog.index.cards import UNREAD, time_of
from turnlog.catalog.index.conditions import Condition
from turnlog.catalog.index.index import Index
from turnlog.catalog.index.notes import MAKING, note
from turnlog.catalog.index.sqlite.database import (
    IN_MEMORY,
    Damaged,
    Database,
    MemoryDatabase,
    database_of,
    has_room,
    remove_old,
    whole,
)
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.watchlist import OURS, Watchlist
from turnlog.catalog.values import PRICES, Standing, Synced
from turnlog.catalog.waiter import still_wanted
from turnlog.catalog.watch import homes
from turnlog.catalog.watch.sweep import Changes, compared, purged, sweep
from turnlog.errors import Invalid, OutOfSpace, Unavailable
from turnlog.layout import HOME_FILE, LAYOUT_LINES, SESSIONS, TRASH
from turnlog.log.ids import MARKS
from turnlog.machine.environment import default_home, environment, user_folder
from turnlog.machine.folder import workspace_path
from turnlog.machine.location import folder_of
from turnlog.machine.modules import without_old
from turnlog.machine.pricelist import stamp
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
_LEARNT = "end of marks"
READ = Condition("<>", "sessions.ending", UNREAD)
SHOWN = (
    Condition("not", "sessions.is_deleted").and_(Condition("not", "sessions.is_hidden"))
    .and_(Condition("unknown", "sessions.parent")).and_(Condition("not", "sessions.is_copied"))
)  # fmt: skip


class Waited(Exception):
    """Somebody else was at work for longer than anybody wants to wait."""


class LocalUpkeep:
    """Looks what has changed, and reads that into the index. With `deferred`, another process may."""

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
        self._waits_since: float | None = None
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
        """What nobody has read yet, as far as a glance tells, where another process reads it."""

    @property
    def is_looked_at(self) -> bool:
        """Whether there is more to answer from than a glance."""
        return self.glanced is None or self.glanced.is_beside

    @property
    def indexes(self) -> list[Index]:
        """Where something is known."""
        if self.glanced is None:
            return [self.index]
        return [self.index, self.glanced.index] if self.glanced.is_beside else [self.glanced.index]

    @property
    def index(self) -> Index:
        """As it is."""
        return Index(SqliteEngine(self.database.connection, self.database.terms))

    def untouched(self, agent: str, since_ns: int) -> int:
        """How many sessions of an agent were not written to since a time, of those that were looked at."""
        if self.glanced is not None and not self.glanced.is_beside:
            return 0
        return Watchlist(self.database.connection).untouched(agent, since_ns)

    def waiting(self) -> None:
        """Somebody else is at it."""
        still_wanted()
        now = time.monotonic()
        self._waits_since = now if self._waits_since is None else self._waits_since
        if self._patience_s is not None and now - self._waits_since > self._patience_s and self.database.is_current:
            raise Waited
        if self._progress is not None:
            self._progress("another turnlog is indexing", 0, 0)

    def sync(self) -> Synced:
        """Look what has changed since, and read it; where that is much and may wait, only take a glance."""
        self._waits_since = None
        if self._folder is not None:
            remove_old(self._folder)
        return self._tried(self._sync)

    def complete(self) -> None:
        """Read everything that is there, the newest first. Whoever was at it before goes on afterwards."""
        self._tried(self._complete)

    def _complete(self) -> None:
        with self.database.lock(self.waiting), self._helper() as helper:
            for most in _slices(_LARGE_SLICE):
                if not self._slice(most, helper):
                    break
        self.glanced = None

    def make(self, workspace: str) -> None:
        """The same for the process that others leave it to: somebody who waits comes in between."""
        self._workspace = workspace
        with self._helper() as helper:
            for most in _slices(_SLICE):
                with self.database.lock():
                    if not self._slice(most, helper):
                        return
                time.sleep(_PAUSE_S)

    def _tried(self, work: Callable[[], _T]) -> _T:
        reason = ""
        for _ in range(_TRIES):
            try:
                return work()
            except OutOfSpace:
                self._into_memory()
            except Damaged as error:
                reason = str(error)
                self.throw_away()
        raise Unavailable(f"{self.database.path} is damaged again and again: {reason}", hint="is the disk failing?")

    def take_in(self, store: Store, here: Synced) -> Synced:
        """Read what is new in our sessions in a store that keeps no files; gives that with what was read before."""
        if self.database.path != IN_MEMORY and not os.path.exists(self.database.path):
            return here
        with self.database.lock(self.waiting):
            indexer = self._indexer()
            changes = compared(Watchlist(self.database.connection), store)
            if changes:
                indexer.run(changes)
        read, read_bytes = here.read + indexer.read, here.read_bytes + indexer.read_bytes
        return Synced(self.index.count(), read, read_bytes, here.gone + indexer.gone, is_rebuilt=here.is_rebuilt)

    def learn(self, store: Store) -> None:
        """Take in what was said of other agents' sessions in a home that is in a database."""
        listed = next(iter(store.listing(ids=[MARKS])), None)
        now = "" if listed is None or listed.last is None else f"{listed.first} {listed.last.id}"
        if now == (self.database.noted(_LEARNT) or ""):
            return
        with self.database.lock(self.waiting):
            self._indexer().learn()
            with self.database.writing() as db:
                note(SqliteEngine(db), _LEARNT, now)

    def _indexer(self, helper: Helper | None = None) -> Indexer:
        with without_old():
            from turnlog.catalog.read.indexer import Indexer

        return Indexer(self.database, self._location if self._agents else None, self._home, self._progress, helper)

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
                self.database.make()  # its maker was stopped before anything was in it

    def forget_purged(self) -> None:
        """What was removed for good leaves the file, and nothing new is read into it."""
        if not os.path.exists(self.database.path):
            return
        with self.database.lock(self.waiting):
            try:
                gone = purged(Watchlist(self.database.connection))
                self._indexer().run(gone)
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
        if layout not in LAYOUT_LINES:
            self._home()

    def _sync(self) -> Synced:
        if self._folder is not None:
            self._check_home(self._folder)
        if not self.database.is_current:
            self.database.close()
        self.glanced = None
        version, changes, is_there, is_making = -1, None, False, False
        try:
            version = self.database.version
            is_making, is_there = self._is_making(), True
            places = self._remembered()
            if places is not None and (is_making or not self.database.is_unfinished):
                changes = self._sweep(places)
        except Damaged:
            is_there = is_making = False  # it is looked at again when nobody else is at it
        if changes is not None and not changes and not is_making and self.database.noted(PRICES) == stamp():
            return Synced(self.index.count(), 0, 0, 0, is_rebuilt=False)
        if self._deferred and self._later(changes, is_there=is_there, is_making=is_making):
            return Synced(sum(index.count() for index in self.indexes), 0, 0, 0, is_rebuilt=False)
        if is_making:
            self.complete()
            return Synced(self.index.count(), 0, 0, 0, is_rebuilt=False)
        with self.database.lock(self.waiting):
            return self._catch_up(version, changes)

    def _is_making(self) -> bool:
        with whole():
            return self.database.noted(MAKING) is not None

    def _later(self, changes: Changes | None, *, is_there: bool, is_making: bool) -> bool:
        """Whether another process has to read, because there is too much. Then a glance is taken of what is new."""
        watchlist = Watchlist(self.database.connection) if is_there else None
        grown = 0
        if watchlist is not None and changes is not None:
            grown = sum(watchlist.growth(file.id, file.path) for file in changes.files)
            if not is_making and not changes.roots and grown <= AT_ONCE:
                return False  # most often: a session has grown, and nothing else
        from turnlog.catalog import making
        from turnlog.catalog.glance.index import GlanceIndex, surveyed

        if self.database.path == IN_MEMORY or not making.is_allowed():
            return False
        workspace = workspace_path(".")
        survey = surveyed(None if changes is None else changes.roots, watchlist, self._own_places(), workspace)
        survey.size_bytes += grown
        if not is_making and survey.size_bytes <= AT_ONCE:
            return False
        if not has_room(self.database.path, survey.size_bytes):
            return False
        if not making.start(self.database.path, self._folder or self._location, at_end=self._at_end):
            return False
        self.glanced = GlanceIndex(survey, workspace, self._home, is_beside=is_there)
        return True

    def standing(self) -> Standing:
        """How much of all there is was read."""
        since = [index.first(SHOWN) for index in self.indexes]
        if self.glanced is None:
            return Standing(self.index.count(SHOWN), 0, time_of(min(filter(None, since), default=None)))
        indexed = self.index.count(SHOWN.and_(READ)) if self.glanced.is_beside else 0
        pending = sum(index.count(SHOWN.but_not(READ)) for index in self.indexes) + self.glanced.unseen
        since.append(self.glanced.first)
        return Standing(indexed, pending, time_of(min(filter(None, since), default=None)), self.glanced.unseen)

    def _prepared(self) -> list[tuple[str, str]]:
        """A catalog that can be written to, and where the agents keep their sessions. Only under the lock."""
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
        return places

    def _catch_up(self, version: int, swept: Changes | None) -> Synced:
        """Read what has changed. Nobody else writes meanwhile; `swept` is used if nobody wrote since that version."""
        places = self._prepared()
        is_same = swept is not None and self.database.version == version
        changes = swept if swept is not None and is_same else self._sweep(places)
        indexer = self._indexer()
        indexer.run(changes)
        is_new, self.database.is_new = self.database.is_new, False
        return Synced(self.index.count(), indexer.read, indexer.read_bytes, indexer.gone, is_rebuilt=is_new)

    def _helper(self) -> Helper:
        with without_old():
            from turnlog.catalog.read.helper import Helper
        return Helper(self._location if self._agents else None)

    def _slice(self, most: int, helper: Helper) -> bool:
        """Read the newest unread sessions, up to this many bytes. Returns whether there is more. Under the lock."""
        places = self._prepared()
        with self.database.writing() as db:
            note(SqliteEngine(db), MAKING, 1)
        indexer = self._indexer(helper if helper.is_usable else None)
        indexer.run(self._sweep(places), most=most)
        if indexer.read and self.index.count(Condition("=", "sessions.ending", UNREAD)):
            return True
        indexer.tidy()
        with self.database.writing() as db:
            SqliteEngine(db).run(SqliteEngine.drop_note, [(MAKING,)])
        return False

    def _remembered(self) -> list[tuple[str, str]] | None:
        """Where the agents keep their sessions; None if they have to be asked."""
        if not self._agents:
            return []
        with whole():
            return homes.remembered(self.database.noted(homes.key()), environment(), user_folder())

    def _own_places(self) -> list[tuple[str, str]]:
        names = () if self._folder is None else (SESSIONS, TRASH)
        return [(OURS, os.path.join(self._folder or "", name)) for name in names]

    def _sweep(self, agents: list[tuple[str, str]]) -> Changes:
        places = self._own_places() + homes.here(agents, self._workspace or workspace_path("."))
        with whole():
            return sweep(Watchlist(self.database.connection), places, agents=self._agents)


def _slices(largest: int) -> Iterator[int]:
    most = _FIRST
    while True:
        yield most
        most = min(4 * most, largest)


def database_for(home: Home | None, location: str, *, agents: bool) -> Database:
    """Where what is known of this machine is kept: nowhere, if all of it lies in the database of that home."""
    if home is not None and not agents:
        from turnlog.store.capability import KeepTables, ability

        if ability(interior(home).store, KeepTables) is not None:
            return MemoryDatabase()
    return database_of(location, agents=agents)


def location_of(location: str | os.PathLike[str] | Home | None) -> str:
    """Where the sessions of a catalog lie."""
    if location is None:
        return default_home()
    if isinstance(location, (str, os.PathLike)):
        return os.fspath(location)
    place = interior(location).made.location
    if place is None:
        raise Invalid("a catalog of a home that was opened nowhere", hint="`turnlog.open` knows where")
    return place
