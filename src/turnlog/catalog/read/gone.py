"""Sessions of other agents whose files are gone: a kept one stays, any other only stays counted."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from typing import TYPE_CHECKING

from turnlog.catalog.index.columns import path_of
from turnlog.catalog.index.notes import KEPT_LISTED, RECALLED, has_note, set_note
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.ledger import Ledger, add_gone
from turnlog.catalog.index.sqlite.watchlist import Stamp, Watchlist
from turnlog.catalog.read import foreign
from turnlog.catalog.watch.discovery import can_read
from turnlog.catalog.watch.sweep import ABSENT, stamp_of
from turnlog.errors import TurnlogError, TurnlogWarning, Unavailable
from turnlog.formats import Source
from turnlog.thread.home.handedover import HandedOver

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from turnlog.catalog.index.batch import Batch, IndexedSession
    from turnlog.catalog.index.rows import SessionRow
    from turnlog.exchange.keeping.keptfile import KeptFiles


class GoneSessions:
    """What is stored of such sessions outside the index: kept files, and the ledger."""

    def __init__(self, location: str, watchlist: Watchlist, batch: Batch) -> None:
        self._location = location
        self._ledger = Ledger(location)
        self._handed = HandedOver(location)
        self._watchlist = watchlist
        self._batch = batch

    @cached_property
    def _kept(self) -> KeptFiles:
        from turnlog.exchange.keeping.keptfile import KeptFiles  # rarely needed: most files are not gone

        return KeptFiles(self._location)

    def kept_at(self, id: int, source: Source, changed: str) -> str | None:
        """The path from which to read a kept session; "" if nothing in it is new, None if it is not kept.

        `changed` is the file that has changed.
        """
        kept_path = self._kept.path_of(source.agent, source.path)
        if changed not in (source.path, kept_path):
            return ""
        stamp = stamp_of(kept_path)
        if stamp is None:
            return None
        try:
            size = self._kept.size_of(source.agent, source.path)
        except TurnlogError:
            return kept_path  # the error is reported when it is read
        if self._watchlist.session(id).size != size or self._watchlist.is_unread(id):
            return kept_path
        self._watchlist.put_parts(self._batch, id, source.agent, {kept_path: stamp})
        return ""

    def only_kept(self) -> Iterator[tuple[Source, str]]:
        """Kept sessions whose files are gone, each with the path of what is kept, for a new index."""
        if has_note(self._batch.db, KEPT_LISTED):
            return
        for agent in filter(can_read, self._kept.agents()):
            for source in self._kept.gone(agent):
                yield source, self._kept.path_of(agent, source.path)

    def read(self, source: Source, session: int, before: IndexedSession | None) -> SessionRow:
        """Read a kept session as if its file were still there."""
        with self._kept.unpacked(source.agent, source.path) as there:
            stamp = stamp_of(there) or Stamp(ABSENT, 0, 0)
            unpacked = Source(source.agent, there, source.key)
            row = foreign.read_session(self._batch, unpacked, session, stamp, before, self._handed)
        return {**row, "mark": None, "is_deleted": False}

    def add_from_ledger(self, db: sqlite3.Connection) -> set[int]:
        """Add the spending of sessions that are gone to a new index. Returns their numbers."""
        engine = SqliteEngine(db)
        if not has_note(engine, KEPT_LISTED):
            set_note(engine, KEPT_LISTED)
        if has_note(engine, RECALLED):
            return set()
        number = self._watchlist.last()
        added: set[int] = set()
        try:
            missing = list(self._ledger.missing(db))
        except Unavailable as error:
            problem = f"what deleted sessions spent is not counted: {error.message}"
            warnings.warn(problem, TurnlogWarning, stacklevel=2)
            return added  # the next pass asks again
        for columns, spent in missing:
            if columns["key"] or not os.path.lexists(path_of(columns["path"])):
                number += 1
                add_gone(db, number, columns, spent)
                added.add(number)
        set_note(engine, RECALLED)
        return added

    def record(self, db: sqlite3.Connection, sessions: set[int] | None) -> None:
        """Record in the ledger what these sessions spent, None for all."""
        self._ledger.put(db, sessions)
