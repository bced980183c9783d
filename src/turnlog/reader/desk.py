"""Sessions that somebody looks at, kept open: each is read once, grows as it goes on, and is let go after a while."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from turnlog.catalog.waiter import PatientLock, while_wanted
from turnlog.errors import NotFound, TurnlogError
from turnlog.reader.conversation import ConversationPieces, EntrySource, OwnEntries, outline_for
from turnlog.reader.follow import stamp_of
from turnlog.thread.reader import history_of, refuse_purged
from turnlog.view.redact import Redactor

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.log.entry import AnyEntry, Checkpoint
    from turnlog.reader.foreignlog import ForeignLog
    from turnlog.session import Home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.thread.outline import Outline

_IDLE_S = 300.0
_CHANGES = 500
_MOST = 8
"""How many unused sessions are kept open."""


class LookedAt:
    """One session while somebody looks at it. Whoever uses it holds `mutex`."""

    def __init__(self, card: Card, home: Home, catalog: Catalog, location: str | None, *, brings_in: bool) -> None:
        self.card = card
        self.mutex = PatientLock()
        self.version = time.time_ns() // 1000
        """A greater number whenever something changed in it, also after it was let go and opened again."""
        self._changes: deque[tuple[int, int]] = deque(maxlen=_CHANGES)
        self.problem = ""
        """Why it can no longer be followed."""
        self.used_at = time.monotonic()
        self.session: ReadOnlySession | None = None
        """Where it is one of ours."""
        self.foreign: ForeignLog | None = None
        self._stack = ExitStack()
        self._brings_in = brings_in
        self._brought_at = self._asked_at = 0.0
        self._file = _inode(card.path)
        self._redactor, self._learnt = Redactor(), 0
        self.changed: dict[str, str] = {}
        """What turns did to files, in words, by the id of the turn: as far as somebody asked."""
        self._others: dict[int, ConversationPieces] = {}
        self._checkpoints: tuple[int, list[Checkpoint]] | None = None
        self._source: EntrySource
        try:
            self._source, outline = self._own(home, catalog) if card.is_ours else self._others_log(location)
            self.pieces = ConversationPieces(self._source, outline)
        except BaseException:
            self._stack.close()
            raise

    def _own(self, home: Home, catalog: Catalog) -> tuple[EntrySource, Outline]:
        self.session = self._stack.enter_context(home.read(self.card.id))
        return OwnEntries(self.session), outline_for(self.session, catalog)

    def _others_log(self, location: str | None) -> tuple[EntrySource, Outline]:
        from turnlog.exchange.kept import kept_or_there
        from turnlog.formats import Source
        from turnlog.reader.foreignlog import ForeignLog

        place = Source(self.card.agent or "", self.card.path, self.card.key)
        there = self._stack.enter_context(kept_or_there(location, place))
        self._seen = stamp_of(there.path)
        self._place = there.path
        self.foreign = ForeignLog(place, there.path)
        return self.foreign, self.foreign.outline

    @property
    def title(self) -> str:
        """What it is called, or else what was asked first."""
        if self.session is not None:
            title = self.session.title or self.card.title
        else:  # what somebody here calls it is on the card
            title = self.card.title or (self.foreign.title if self.foreign is not None else None)
        return title or self.card.preview or "(no title)"

    def branch(self, head: int) -> ConversationPieces:
        """The way to another head of it."""
        if head not in self._others:
            self._others[head] = ConversationPieces(self._source, self.pieces.outline, head)
        return self._others[head]

    def find(self, word: str) -> int:
        """The number of an entry, by that or by its id. `NotFound` where there is none."""
        outline = self.pieces.outline
        if word.isdecimal() and len(word) < 19 and 0 < int(word) <= outline.last:
            return int(word)
        if self.foreign is not None:
            seq = self.foreign.find(word)
        else:
            assert self.session is not None
            entry = self.session.find(word)
            seq = None if entry is None else entry.seq
        if seq is None:
            raise NotFound(f"no entry {word!r:.80} in session {self.card.name}", hint="see its outline")
        return seq

    def look(self) -> int | None:
        """Take in what was written since; gives the first piece that is another or new, None where all is the same."""
        try:
            changed = self._look()
        except (TurnlogError, OSError) as error:
            self.problem = error.message if isinstance(error, TurnlogError) else str(error.strerror or error)
            raise
        if changed is not None:
            self.version += 1
            self._changes.append((self.version, changed))
            self._others.clear()
        return changed

    def changed_since(self, version: int) -> int:
        """The first piece that is another than it was then; 0 where nobody remembers."""
        changes = list(self._changes)
        if version == self.version:
            return len(self.pieces)
        if not changes or version < changes[0][0] - 1:
            return 0
        return min(first for number, first in changes if number > version)

    def _look(self) -> int | None:
        if self.session is not None:
            self._bring_in(self.session)
            history = history_of(self.session)
            if not history.log.wait(self.session.seq):
                return None
            if self._is_another(self.session):
                self.session.refresh()
                return self.pieces.renew(outline_for(self.session), 1)
            with history.mutex:
                return self.pieces.grow() if history.catch_up() else None
        assert self.foreign is not None
        now = stamp_of(self._place)
        if now == self._seen:
            return None
        self._seen = now
        first = self.foreign.grow()
        return None if first is None else self.pieces.renew(self.foreign.outline, first)

    def _is_another(self, session: ReadOnlySession) -> bool:
        """Whether its file was written anew, because something in it was erased or repaired; asked once a second."""
        if time.monotonic() - self._asked_at < 1:
            return False
        self._asked_at = time.monotonic()
        refuse_purged(session)
        before, self._file = self._file, _inode(self.card.path)
        return 0 not in (before, self._file) and before != self._file

    def _bring_in(self, session: ReadOnlySession) -> None:
        """What was said since, where hooks tell of the turns: its agent wrote it, and here it is read."""
        if not self._brings_in or not history_of(session).state.is_relayed or time.monotonic() - self._brought_at < 1:
            return
        from turnlog.live.follow import catch_up

        self._brought_at = time.monotonic()
        try:
            catch_up(history_of(session).store, session.id)
        except TurnlogError:
            return  # what is there can be read all the same

    def read(
        self, first: int, end: int, *, is_redacted: bool = False, pieces: ConversationPieces | None = None
    ) -> Iterator[list[AnyEntry]]:
        """The entries of these pieces, without secrets if so wanted: those of all of it are known before."""
        redactor = self.redactor() if is_redacted else None
        for piece in (pieces or self.pieces).read(first, end):
            yield piece if redactor is None else [redactor.entry(entry) for entry in piece]

    def redactor(self) -> Redactor:
        """Knows every secret that is in it by now."""
        for entry in while_wanted(self._source.forward(self._learnt)):
            self._redactor.learn(entry)
            self._learnt = entry.seq
        return self._redactor

    def checkpoints(self) -> list[Checkpoint]:
        """Those of a session of ours, oldest first: all of its log is read for that, once for every state of it."""
        if self.session is None:
            return []
        if self._checkpoints is None or self._checkpoints[0] != self.session.seq:
            self._checkpoints = (self.session.seq, self.session.checkpoints())
        return self._checkpoints[1]

    def blob(self, digest: str) -> bytes:
        """A picture or a file in it."""
        if self.session is not None:
            return self.session.blob(digest)
        assert self.foreign is not None
        return self.foreign.blob(digest)

    def close(self) -> None:
        """Let go of it."""
        self._stack.close()


def _inode(path: str) -> int:
    try:
        return Path(path).stat().st_ino if path else 0
    except OSError:
        return 0  # it is gone, or lies in a database


class Desk:
    """Where sessions lie open. Safe to use from many threads."""

    def __init__(
        self, home: Home, catalog: Catalog, location: str | None = None, *, brings_in: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.home, self.catalog = home, catalog
        self._location = location
        self._brings_in = brings_in
        """Whether what an agent with hooks said is taken into the home, as `turnlog show` does."""
        self._clock = clock
        self._mutex = threading.Lock()
        self._open: dict[str, LookedAt] = {}
        self._opening: dict[str, PatientLock] = {}

    def open(self, card: Card) -> LookedAt:
        """A session, as it was when it was last looked at; opened if need be. Two that ask at once wait for one."""
        with self._mutex:
            looked_at = self._open.get(card.name)
            if looked_at is not None and not looked_at.problem:
                looked_at.used_at, looked_at.card = self._clock(), card
                return looked_at
            opening = self._opening.setdefault(card.name, PatientLock())
        with opening:
            with self._mutex:
                looked_at = self._open.get(card.name)
            if looked_at is None or looked_at.problem:
                opened = LookedAt(card, self.home, self.catalog, self._location, brings_in=self._brings_in)
                with self._mutex:
                    self._open[card.name] = opened
                    self._opening.pop(card.name, None)
                    looked_at = opened
            looked_at.used_at = self._clock()
        self.tidy()
        return looked_at

    def tidy(self, *, idle_s: float = _IDLE_S) -> None:
        """Let go of what nobody looked at for a while, and of the oldest where there are too many."""
        with self._mutex:
            names = sorted(self._open, key=lambda name: self._open[name].used_at, reverse=True)
            late = self._clock() - idle_s
            gone = [name for number, name in enumerate(names) if number >= _MOST or self._open[name].used_at < late]
            leaving = [self._open.pop(name) for name in gone]
        for one in leaving:
            with one.mutex:
                one.close()

    def close(self) -> None:
        """Let go of everything."""
        with self._mutex:
            leaving, self._open = list(self._open.values()), {}
        for one in leaving:
            one.close()
