"""A session while somebody views it: read once, in pieces; then only what is new, with or without its secrets."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

from turnlog.catalog.waiter import PatientLock, while_wanted
from turnlog.errors import Corrupt, NotFound, TurnlogError
from turnlog.log.entry import Message
from turnlog.log.prompt.promptmessage import label_of
from turnlog.reader.part import numbered
from turnlog.reader.viewing.conversation import ConversationPieces, SessionSource
from turnlog.reader.viewing.ownlog import OwnLog
from turnlog.view.cost import Costs
from turnlog.view.secret.redactor import Redactor, without_last_word

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.log.entry import AnyEntry, Checkpoint
    from turnlog.session import Home, ReadOnlySession
    from turnlog.thread.outline import OutlineItem

_CHANGES = 500
"""How many changes are remembered, for pages that ask what changed since a version."""


class ViewedSession:
    """One session while somebody views it. Whoever uses it holds `mutex`."""

    def __init__(
        self, card: Card, home: Home, catalog: Catalog, location: str | None, *, brings_in: bool, used_at: float
    ) -> None:
        self.card = card
        self.mutex = PatientLock()
        self.version = time.time_ns() // 1000
        """A greater number whenever something changed in it, also after it was let go and opened again."""
        self._changes: deque[tuple[int, int]] = deque(maxlen=_CHANGES)
        self.problem = ""
        """Why it can no longer be followed."""
        self.used_at = used_at
        self._redactor = Redactor()
        self._learnt = 0
        """The last entry whose secrets the redactor knows."""
        self._file_changes: dict[str, str] = {}
        """What turns did to files, in words, by the id of the turn: as far as somebody asked."""
        self._branches: dict[int, ConversationPieces] = {}
        self._stack = ExitStack()
        try:
            self.source = self._own(home, catalog, brings_in) if card.is_ours else self._foreign(location)
            self.pieces = ConversationPieces(self.source, self.source.outline)
        except BaseException:
            self._stack.close()
            raise

    def _own(self, home: Home, catalog: Catalog, brings_in: bool) -> SessionSource:
        session = self._stack.enter_context(home.read(self.card.id))
        return OwnLog(session, self.card.path, catalog, brings_in=brings_in)

    def _foreign(self, location: str | None) -> SessionSource:
        from turnlog.exchange.keeping.keptfile import KeptFiles
        from turnlog.formats import Source
        from turnlog.reader.viewing.foreignlog import ForeignLog

        source = Source(self.card.agent or "", self.card.path, self.card.key)
        readable = self._stack.enter_context(KeptFiles(location).readable(source))
        return ForeignLog(source, readable.path)

    @property
    def session(self) -> ReadOnlySession | None:
        """The session of ours; None for another agent's."""
        return self.source.session

    @property
    def title(self) -> str:
        """The title of the session, or else its first prompt."""
        titles = [self.source.title, self.card.title] if self.card.is_ours else [self.card.title, self.source.title]
        return next(filter(None, titles), "") or self.card.preview or "(no title)"  # the card has what a user calls it

    def branch(self, head: int) -> ConversationPieces:
        """The pieces on the way to another head."""
        if head not in self._branches:
            self._branches[head] = ConversationPieces(self.source, self.pieces.outline, head)
        return self._branches[head]

    def find(self, word: str) -> int:
        """The number of an entry, by that or by its id. `NotFound` where there is none."""
        number = numbered(word)
        if number is not None and 0 < number <= self.pieces.outline.last:
            return number
        seq = self.source.find(word)
        if seq is None:
            raise NotFound(f"no entry {word!r:.80} in session {self.card.name}", hint="see its outline")
        return seq

    # ── what is new ───────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> int | None:
        """Read what was appended. Returns the first piece that is new or changed; None if nothing changed."""
        try:
            growth = self.source.grow(self.pieces)
        except (TurnlogError, OSError) as error:
            self.problem = error.message if isinstance(error, TurnlogError) else str(error.strerror or error)
            raise
        if growth is None:
            return None
        self._learnt = min(self._learnt, growth.first_entry - 1)  # a log that is read anew uses its numbers again
        self._branches.clear()
        if growth.first_piece is not None:
            self.version += 1
            self._changes.append((self.version, growth.first_piece))
        return growth.first_piece

    def changed_since(self, version: int) -> int:
        """The first piece that changed since that version; 0 if that is unknown: too long ago, or never."""
        changes = list(self._changes)
        if version == self.version:
            return len(self.pieces)
        if version > self.version or not changes or version < changes[0][0] - 1:
            return 0
        return min(first for number, first in changes if number > version)

    # ── what turns did to files ───────────────────────────────────────────────────────────────────

    def unknown_turns(self, turns: set[str]) -> set[str]:
        """Those of these turns whose changes of files were not asked for yet."""
        return turns - self._file_changes.keys()

    def add_file_changes(self, changes: dict[str, str]) -> None:
        """Keep what turns did to files, in words, by the id of the turn."""
        self._file_changes |= changes

    def file_change_of(self, turn: str) -> str:
        """What a turn did to files, in words; empty if it did nothing, or nobody asked yet."""
        return self._file_changes.get(turn, "")

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def read(
        self, first: int, end: int, *, is_redacted: bool = False, pieces: ConversationPieces | None = None
    ) -> Iterator[list[AnyEntry]]:
        """Read the pieces from `first` and before `end`. With `is_redacted`, every secret of the session is known."""
        redactor = self.redactor() if is_redacted else None
        for piece in (pieces or self.pieces).read(first, end):
            yield piece if redactor is None else [redactor.entry(entry) for entry in piece]

    def read_with_costs(
        self, first: int, end: int, *, is_redacted: bool = False, pieces: ConversationPieces | None = None
    ) -> tuple[Costs, Iterator[list[AnyEntry]]]:
        """Read pieces as `read`, and their costs: a request of several messages may have begun in the piece before."""
        begin = max(0, first - 1)
        costs, read = Costs(), self.read(begin, end, is_redacted=is_redacted, pieces=pieces)
        for piece in islice(read, first - begin):
            for entry in piece:
                costs(entry)
        return costs, read

    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints of a session of ours, oldest first."""
        return self.source.checkpoints()

    def blob(self, digest: str) -> bytes:
        """A picture or a file in it."""
        return self.source.blob(digest)

    def blob_size(self, digest: str) -> int | None:
        """The size of a picture or a file in it; None if it cannot be read."""
        try:
            return len(self.blob(digest))
        except (NotFound, Corrupt):
            return None

    # ── without secrets ───────────────────────────────────────────────────────────────────────────

    def redactor(self) -> Redactor:
        """What takes secrets out, and knows every one that is in the session by now."""
        for entry in while_wanted(self.source.forward(self._learnt)):
            self._redactor.learn(entry)
            self._learnt = entry.seq
        return self._redactor

    def redacted_title(self) -> str:
        """The title without its secrets."""
        title = self.title
        if title == self.card.preview and title.endswith("…"):
            prompts = (mark.item for mark in self.pieces.landmarks() if mark.item.is_prompt)
            return next(map(self.redacted_label, prompts), "(no title)")
        return self.redactor().text(without_last_word(title))

    def redacted_label(self, item: OutlineItem) -> str:
        """The label of an entry without its secrets: of a prompt, they are taken out before it is cut."""
        redactor = self.redactor()
        if item.is_prompt and item.label.endswith("…"):
            for entry in self.source.forward(item.seq - 1, item.seq + 1):
                if isinstance(shown := redactor.entry(entry), Message):
                    return label_of(shown)
        return redactor.text(without_last_word(item.label))

    def close(self) -> None:
        """Let go of it."""
        self._stack.close()
