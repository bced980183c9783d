"""The outlines of our own sessions, stored in pieces: appending changes only the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.thread.outline import Outline

if TYPE_CHECKING:
    from turnlog.catalog.index.batch import Batch
    from turnlog.catalog.index.engine import Engine
    from turnlog.log.entry import AnyEntry

_PIECE = 4096
_LAST = "SELECT first, data FROM outlines WHERE session = ? AND first < ? ORDER BY first DESC LIMIT 1"
_ALL = "SELECT data FROM outlines WHERE session = ? ORDER BY first"


class OutlineIntake:
    """Takes the entries from `start` on into the outline in the index."""

    def __init__(self, batch: Batch, session: int, start: int) -> None:
        self._batch, self._session, self._first = batch, session, start
        self._is_kept = batch.db.keeps_details
        self._piece = Outline()
        for first, data in batch.db.rows(_LAST, (session, start)) if self._is_kept and start else ():
            before = Outline.decode(data)
            self._is_kept = before is not None and before.last < start
            if before is not None and len(before) < _PIECE:
                self._first, self._piece = first, before
        if batch.db.keeps_details:
            batch.execute("DELETE FROM outlines WHERE session = ? AND first >= ?", (session, self._first))

    def add(self, entry: AnyEntry) -> None:
        """Add an entry."""
        if self._is_kept:
            self._piece.take(entry)
            if len(self._piece) >= _PIECE:
                self.finish()
                self._first, self._piece = entry.seq + 1, Outline()

    def finish(self) -> None:
        """Write the current piece."""
        if self._is_kept and len(self._piece):
            values = (self._session, self._first, self._piece.encode())
            self._batch.execute("INSERT INTO outlines (session, first, data) VALUES (?, ?, ?)", values)


def outline_in(engine: Engine, session: int) -> Outline:
    """The stored outline of a session: all of it or its beginning."""
    outline = Outline()
    for (data,) in engine.rows(_ALL, (session,)) if engine.keeps_details else ():
        piece = Outline.decode(data)
        if piece is None:
            break
        outline.extend(piece)
    return outline
