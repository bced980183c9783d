"""A session of ours as a viewer reads it: its entries, what is appended to it, and whether it was written anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from turnlog.errors import TurnlogError
from turnlog.log.entry import AnyEntry
from turnlog.reader.viewing.conversation import LogGrowth, extend_outline
from turnlog.thread.outline import Outline
from turnlog.thread.reader import history_of, refuse_purged

if TYPE_CHECKING:
    from turnlog.catalog import Catalog
    from turnlog.log.entry import Checkpoint
    from turnlog.reader.viewing.conversation import ConversationPieces
    from turnlog.session import ReadOnlySession
    from turnlog.thread.reader import SessionReader

_PAUSE_S = 1.0
"""The least time between two looks at files that seldom change: that of the log, and that of its agent."""


class OwnEntries:
    """The entries of a session of ours."""

    def __init__(self, session: SessionReader) -> None:
        self._session = session

    @property
    def head(self) -> int:
        """See `EntrySource`."""
        return self._session.head

    @property
    def title(self) -> str | None:
        """See `EntrySource`."""
        return self._session.title

    def forward(self, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
        """See `EntrySource`."""
        history = history_of(self._session)
        for entry in history.forward(after, before):
            yield history.whole(entry)


class OwnLog(OwnEntries):
    """A session of ours that somebody views; see `SessionSource`."""

    def __init__(self, session: ReadOnlySession, path: str, catalog: Catalog, *, brings_in: bool) -> None:
        super().__init__(session)
        self.session = session
        self.outline = outline_for(session, catalog)
        self._path = path
        self._inode = _inode(path)
        self._inode_asked_at = self._brought_in_at = 0.0
        self._brings_in = brings_in
        self._checkpoints: tuple[int, list[Checkpoint]] | None = None

    def grow(self, pieces: ConversationPieces) -> LogGrowth | None:
        """See `SessionSource`."""
        self._bring_in()
        history = history_of(self.session)
        if not history.log.wait(self.session.seq):
            return None
        if self._is_another():
            self.session.refresh()
            return LogGrowth(1, pieces.renew(outline_for(self.session), 1))
        first_new = pieces.outline.last + 1
        with history.mutex:
            return LogGrowth(first_new, pieces.grow()) if history.catch_up() else None

    def _is_another(self) -> bool:
        """Whether its file was written anew, because something in it was erased or repaired."""
        if time.monotonic() - self._inode_asked_at < _PAUSE_S:
            return False
        self._inode_asked_at = time.monotonic()
        refuse_purged(self.session)
        before, self._inode = self._inode, _inode(self._path)
        return 0 not in (before, self._inode) and before != self._inode

    def _bring_in(self) -> None:
        """What was said since, where hooks tell of the turns: its agent wrote it, and here it is read."""
        if not self._brings_in or not history_of(self.session).state.is_relayed:
            return
        if time.monotonic() - self._brought_in_at < _PAUSE_S:
            return
        from turnlog.live.transcript import import_new

        self._brought_in_at = time.monotonic()
        try:
            import_new(history_of(self.session).store, self.session.id)
        except TurnlogError:
            return  # what is there can be read all the same

    def find(self, name: str) -> int | None:
        """See `SessionSource`."""
        entry = self.session.find(name)
        return None if entry is None else entry.seq

    def blob(self, digest: str) -> bytes:
        """See `SessionSource`."""
        return self.session.blob(digest)

    def checkpoints(self) -> list[Checkpoint]:
        """See `SessionSource`. All of the log is read for that, once for every state of it."""
        if self._checkpoints is None or self._checkpoints[0] != self.session.seq:
            self._checkpoints = (self.session.seq, self.session.checkpoints())
        return self._checkpoints[1]


def outline_for(session: SessionReader, catalog: Catalog | None = None) -> Outline:
    """The outline of a session: what the catalog has of it, and the rest from the log."""
    fresh = Outline()
    if catalog is not None:
        from turnlog.catalog.ask.detail import outline

        above = history_of(session)
        chain: list[tuple[str, int | None]] = [(above.id, None)]
        while above.fork is not None:
            chain.append((above.fork.session, above.fork.seq))
            above = above.owner_of(above.fork.seq)
        for name, until in reversed(chain):
            indexed = catalog.ask(outline, name)
            if indexed.seqs and indexed.seqs[0] <= fresh.last:
                break  # a session of another time is called so
            fresh.extend(indexed, until)
            if until is not None and fresh.last < until:
                break  # the rest comes from the log
    extend_outline(fresh, OwnEntries(session))
    return fresh


def _inode(path: str) -> int:
    try:
        return Path(path).stat().st_ino if path else 0
    except OSError:
        return 0  # it is gone, or lies in a database
