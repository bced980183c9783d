"""Sessions that are new go into the index with what a glance at them tells, before any is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.catalog.glance.ends import SessionGlance
from turnlog.catalog.glance.heading import glance
from turnlog.catalog.glance.own import row_of_info
from turnlog.catalog.glance.survey import COLUMNS, QUICK, FoundFile, row_at, row_of_glance
from turnlog.catalog.index.sqlite.watchlist import OURS, Stamp, Watchlist
from turnlog.catalog.watch.sweep import ABSENT, stamp_of
from turnlog.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog.index.batch import Batch
    from turnlog.formats import Source
    from turnlog.session import Home
    from turnlog.thread.report import Info

_AT_ONCE = 500
_LARGE = 4 << 20
"""A document larger than this is not parsed for a glance."""
_DATABASES = (".db", ".sqlite", ".sqlite3")


class Announcer:
    """Takes a glance at each, and gives it a number from `next` on."""

    def __init__(self, watchlist: Watchlist, batch: Batch, home: Callable[[], Home], first: int) -> None:
        self._watchlist = watchlist
        self._batch = batch
        self._home = home
        self.next = first

    def take(self, source: Source, parts: list[str]) -> None:
        """A session of another agent."""
        stamp = stamp_of(source.path)
        if stamp is None:
            return
        row = self._row(source, stamp)
        if row is None:
            self._watchlist.put_file(self._batch, source.path, source.agent, stamp)
            return
        stamps = {part: stamp_of(part) or Stamp(ABSENT, 0, 0) for part in parts}
        gone = self._watchlist.number_of(source.agent, source.path, source.key)  # it is counted, and was not there
        self._put(row, source.agent, {source.path: stamp, **stamps}, gone)

    def take_ours(self, sessions: list[tuple[str, str, bool]]) -> list[tuple[str, str, bool]]:
        """Sessions of ours: file, id, and whether they are deleted. Gives those that are known, under another path."""
        moved: list[tuple[str, str, bool]] = []
        infos: dict[str, Info] = {}
        for is_deleted in {is_deleted for *_, is_deleted in sessions}:
            infos.update({info.id: info for info in self._home().sessions(deleted=is_deleted)})
        for path, native, is_deleted in sessions:
            stamp = stamp_of(path)
            if self._watchlist.own(native) is not None:
                moved.append((path, native, is_deleted))
                continue
            if stamp is None:
                continue
            file = FoundFile(stamp.mtime, OURS, path, max(stamp.size, 0))
            self._put(row_of_info(file, native, infos.get(native), is_deleted=is_deleted), OURS, {path: stamp})
        return moved

    def _row(self, source: Source, stamp: Stamp) -> tuple[Any, ...] | None:
        file = FoundFile(stamp.mtime, source.agent, source.path, max(stamp.size, 0))
        if source.agent in QUICK and not source.key:
            return row_at(file) if stamp.size >= 0 else row_of_glance(file, SessionGlance(_stem(source.path)))
        if stamp.size > _LARGE and not source.path.endswith(_DATABASES):
            return row_of_glance(file, SessionGlance(_stem(source.path)), source.key)
        session = glance(format_of(source.agent), source)
        return row_of_glance(*(session or (file, SessionGlance(_stem(source.path)))), key=source.key)

    def _put(self, row: tuple[Any, ...], agent: str, parts: dict[str, Stamp], gone: int | None = None) -> None:
        number = self.next if gone is None else gone
        self._watchlist.announce(self._batch, number, COLUMNS, row, is_back=gone is not None)
        self._watchlist.put_parts(self._batch, number, agent, parts)
        self.next += gone is None
        if self.next % _AT_ONCE == 0:
            self._batch.flush()


def _stem(path: str) -> str:
    return os.path.basename(path).partition(".")[0]
