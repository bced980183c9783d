"""Adds new sessions to the index with what a glance shows, before any is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.catalog.glance.ends import SessionGlance, stem_of
from turnlog.catalog.glance.heading import glance
from turnlog.catalog.glance.own import infos_of, row_of_info
from turnlog.catalog.glance.survey import QUICK, FoundFile, row_at, row_of_glance
from turnlog.catalog.index.sqlite.watchlist import OURS, Stamp, Watchlist
from turnlog.catalog.watch.discovery import DATABASES
from turnlog.catalog.watch.sweep import ABSENT, stamp_of
from turnlog.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog.index.batch import Batch
    from turnlog.catalog.index.rows import GlanceRow
    from turnlog.catalog.watch.discovery import OwnFile
    from turnlog.formats import Source
    from turnlog.session import Home

_AT_ONCE = 500
_LARGE = 4 << 20
"""A document larger than this is not parsed for a glance."""


class Announcer:
    """Takes a glance at each new session, and numbers it from `next` on."""

    def __init__(self, watchlist: Watchlist, batch: Batch, home: Callable[[], Home], first: int) -> None:
        self._watchlist = watchlist
        self._batch = batch
        self._home = home
        self.next = first

    def announce(self, source: Source, parts: list[str]) -> None:
        """Announce a session of another agent."""
        stamp = stamp_of(source.path)
        if stamp is None:
            return
        row = self._row(source, stamp)
        if row is None:
            self._watchlist.put_file(self._batch, source.path, source.agent, stamp)
            return
        stamps = {part: stamp_of(part) or Stamp(ABSENT, 0, 0) for part in parts}
        gone = self._watchlist.number_of(source.agent, source.path, source.key)  # it was gone, and is still counted
        self._put(row, source.agent, {source.path: stamp, **stamps}, gone)

    def announce_ours(self, files: list[OwnFile]) -> list[OwnFile]:
        """Announce our sessions. Returns those that are known under another path."""
        moved: list[OwnFile] = []
        places = {own.is_deleted for own in files}
        infos = infos_of(self._home(), places) if places else {}
        for own in files:
            path, native, is_deleted = own
            stamp = stamp_of(path)
            if self._watchlist.own(native) is not None:
                moved.append(own)
                continue
            if stamp is None:
                continue
            file = FoundFile(stamp.mtime, OURS, path, max(stamp.size, 0))
            row = row_of_info(file, native, infos.get((native, is_deleted)), is_deleted=is_deleted)
            self._put(row, OURS, {path: stamp})
        return moved

    def _row(self, source: Source, stamp: Stamp) -> GlanceRow | None:
        file = FoundFile(stamp.mtime, source.agent, source.path, max(stamp.size, 0))
        if source.agent in QUICK and not source.key:
            return row_at(file) if stamp.size >= 0 else row_of_glance(file, SessionGlance(stem_of(source.path)))
        if stamp.size > _LARGE and not source.path.endswith(DATABASES):
            return row_of_glance(file, SessionGlance(stem_of(source.path)), source.key)
        session = glance(format_of(source.agent), source)
        return row_of_glance(*(session or (file, SessionGlance(stem_of(source.path)))), key=source.key)

    def _put(self, row: GlanceRow, agent: str, parts: dict[str, Stamp], gone: int | None = None) -> None:
        number = self.next if gone is None else gone
        self._watchlist.announce(self._batch, number, row, is_back=gone is not None)
        self._watchlist.put_parts(self._batch, number, agent, parts)
        self.next += gone is None
        if self.next % _AT_ONCE == 0:
            self._batch.flush()
