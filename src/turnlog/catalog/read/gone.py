"""Sessions of other agents whose files are gone: one that is kept stays, of any other what it spent stays counted."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.sqlite.ledger import Ledger, add_gone
from turnlog.catalog.index.sqlite.watchlist import Stamp, Watchlist
from turnlog.catalog.index.texts import path_of
from turnlog.catalog.read import foreign
from turnlog.catalog.watch.discovery import can_read
from turnlog.catalog.watch.sweep import ABSENT, stamp_of
from turnlog.formats import Source
from turnlog.thread.handed import HandedOver

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from turnlog.catalog.index.batch import Batch, Before
    from turnlog.exchange.kept import KeptFiles

_RECALLED = "recalled"
"""Noted when an index that was made anew knows what was gone before."""


class GoneSessions:
    """What is known of them beside the index: the files that are kept, and the ledger."""

    def __init__(self, location: str, watchlist: Watchlist, batch: Batch) -> None:
        self._location = location
        self._ledger = Ledger(location)
        self._handed = HandedOver(location)
        self._watchlist = watchlist
        self._batch = batch

    @cached_property
    def _kept(self) -> KeptFiles:
        from turnlog.exchange.kept import KeptFiles  # most that is read again is where it was

        return KeptFiles(self._location)

    def kept_at(self, id: int, source: Source, changed: str) -> str | None:
        """Where a session is to be read from that is kept; "" if nothing of it is new, None if it is not kept.

        `changed` is the file that is not as it was.
        """
        place = self._kept.place(source.agent, source.path)
        if changed not in (source.path, place):
            return ""
        stamp = stamp_of(place)
        if stamp is None:
            return None
        if self._watchlist.session(id).size != self._kept.size_of(source.agent, source.path):
            return place
        self._watchlist.put_parts(self._batch, id, source.agent, {place: stamp})
        return ""

    def only_kept(self) -> Iterator[tuple[Source, str]]:
        """The sessions whose files are gone, and where they are kept, for an index that knows nothing yet."""
        if self._watchlist.noted(_RECALLED):
            return
        for agent in filter(can_read, self._kept.agents()):
            for source in self._kept.gone(agent):
                yield source, self._kept.place(agent, source.path)

    def read(self, source: Source, session: int, before: Before | None) -> dict[str, Any]:
        """A session that is kept, as if its file were still there."""
        with self._kept.unpacked(source.agent, source.path) as there:
            stamp = stamp_of(there) or Stamp(ABSENT, 0, 0)
            unpacked = Source(source.agent, there, source.key)
            row = foreign.take(self._batch, unpacked, session, stamp, before, self._handed)
        return row | {"mark": None, "is_deleted": 0}

    def recall(self, db: sqlite3.Connection) -> set[int]:
        """What sessions spent that are gone, into an index that knows nothing yet; gives their numbers."""
        if self._watchlist.noted(_RECALLED):
            return set()
        number = self._watchlist.last()
        added: set[int] = set()
        for columns, spent in self._ledger.missing(db):
            if columns["key"] or not os.path.lexists(path_of(columns["path"])):
                number += 1
                add_gone(db, number, columns, spent)
                added.add(number)
        self._watchlist.note(db, _RECALLED)
        return added

    def write_down(self, db: sqlite3.Connection, sessions: set[int] | None) -> None:
        """What these spent, None for all."""
        self._ledger.put(db, sessions)
