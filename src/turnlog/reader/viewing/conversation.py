"""The conversation of a session in pieces, any of which can be read without the rest; it grows with the log.

A piece is what is read together: a message with the results of its calls, or something that happened in between. Which
there are is known from the outline; what was said is read when it is wanted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from turnlog.log.entry import AnyEntry
from turnlog.log.prompt.promptmessage import LABEL
from turnlog.log.text import one_line
from turnlog.thread.outline import CALLS, ERROR, PROMPT, SHOWN, Outline, OutlineItem

if TYPE_CHECKING:
    from turnlog.log.entry import Checkpoint
    from turnlog.session import ReadOnlySession

_TELLING = PROMPT | ERROR
_EVENTS = frozenset(("compaction", "child", "head"))
_NODES = frozenset(("user", "assistant", "tool", "system", "compaction", "custom"))
"""What a piece begins with, whatever was asked before."""


class EntrySource(Protocol):
    """Where the entries of a session are read, ours or another agent's."""

    @property
    def head(self) -> int:
        """The entry at which the conversation stands."""
        ...

    @property
    def title(self) -> str | None:
        """What it is called."""
        ...

    def forward(self, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
        """Entries with `after < seq < before`, whole, oldest first."""
        ...


class LogGrowth(Struct, frozen=True):
    """What is new in a session, or was written anew."""

    first_entry: int
    """The first entry that is new or changed, whether or not a reader sees it."""
    first_piece: int | None
    """The first piece that is new or changed; None if every piece is as it was."""


class SessionSource(EntrySource, Protocol):
    """A session that somebody views: one of ours, or another agent's where it lies."""

    outline: Outline
    """The outline as it was opened; `ConversationPieces` has the current one."""

    @property
    def session(self) -> ReadOnlySession | None:
        """The session of ours; None for another agent's."""
        ...

    def grow(self, pieces: ConversationPieces) -> LogGrowth | None:
        """Take what was appended into the pieces; None if nothing changed."""
        ...

    def find(self, name: str) -> int | None:
        """The number of the entry with that id."""
        ...

    def blob(self, digest: str) -> bytes:
        """A picture or a file in it."""
        ...

    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints of the session, oldest first."""
        ...


def extend_outline(outline: Outline, source: EntrySource) -> None:
    """Add to the outline what was appended."""
    for entry in source.forward(outline.last):
        outline.take(entry)


class Landmark(NamedTuple):
    """An entry of the outline that readers go to, and the piece that it is in."""

    piece: int
    item: OutlineItem


class ConversationPieces:
    """The conversation up to one head, in pieces."""

    def __init__(self, source: EntrySource, outline: Outline, head: int | None = None) -> None:
        self.source, self.outline = source, outline
        self._is_moving = head is None
        self._begin(source.head if head is None else head)

    def _begin(self, head: int) -> None:
        self.head = head
        self.entries_shown: list[int] = []
        """The entries that a reader sees, oldest first."""
        self.starts: list[int] = []
        """Where in these each piece begins."""
        self._awaits_results = False
        self._seen = 0
        self._is_here = True
        self._path = {self.outline.seqs[index] for index in self.outline.path(head)}
        self._left = len(self._path)
        self._walk()

    def __len__(self) -> int:
        return len(self.starts)

    def _walk(self) -> None:
        """Go through what the outline has that was not looked at, as a reader of the whole log would."""
        outline, self._title = self.outline, self._current_title()
        is_end = self.head == self.source.head
        for index in range(self._seen, len(outline)):
            seq, kind = outline.seqs[index], outline.kinds[index]
            if kind == "head":
                to = outline.parents[index]
                self._is_here = (not to or to in self._path) and (self._left > 0 or is_end)
            elif outline.parents[index] >= 0:
                self._is_here = seq in self._path
                self._left -= self._is_here
            if not self._is_here or not outline.flags[index] & SHOWN:
                continue
            if kind == "set" and outline.labels.get(seq) == self._title:
                continue  # it only says what stands above the conversation anyway
            self._place(index, seq, kind)
        self._seen = len(outline)
        self._landmarks: list[Landmark] | None = None

    def _current_title(self) -> str:
        """The title, cut as the labels of the outline are."""
        return one_line(self.source.title or "", LABEL)

    def _place(self, index: int, seq: int, kind: str) -> None:
        is_node = kind in _NODES
        if not (self._awaits_results and (not is_node or kind == "tool")):
            self.starts.append(len(self.entries_shown))
            self._awaits_results = False
        if is_node and kind != "tool":
            self._awaits_results = bool(self.outline.flags[index] & CALLS)
        self.entries_shown.append(seq)

    def renew(self, outline: Outline, first: int) -> int | None:
        """Another outline, the same before entry `first`; gives the first piece that may be another, None for none."""
        self.outline = outline
        changed = self._begin_anew(self.source.head if self._is_moving else self.head)
        touched = self.position(first) if len(self) and self.entries_shown[-1] >= first else None
        return min((number for number in (changed, touched) if number is not None), default=None)

    def grow(self) -> int | None:
        """Take in what was appended; gives the first piece that is another or new, None where all is as it was."""
        before, rows_before = len(self.starts), len(self.entries_shown)
        extend_outline(self.outline, self.source)
        head = self.source.head if self._is_moving else self.head
        if self._current_title() != self._title:  # what was left out because it said the same is shown now
            return self._begin_anew(head)
        if self._seen == len(self.outline):
            return None
        new = range(self._seen, len(self.outline))
        last = max(self._path, default=0)
        for index in new:
            if self.outline.kinds[index] == "head":
                return self._begin_anew(head)
            if self.outline.parents[index] < 0:
                continue
            if self.outline.parents[index] != last:
                return self._begin_anew(head)
            last = self.outline.seqs[index]
            self._path.add(last)
            self._left += 1
        self.head = head
        self._walk()
        if len(self.entries_shown) == rows_before:
            return None
        is_longer = len(self.starts) == before or self.starts[before] > rows_before
        return before - 1 if is_longer and before else before

    def _begin_anew(self, head: int) -> int | None:
        before = [self.seqs(number, number + 1) for number in range(len(self))]
        self._begin(head)
        for number in range(len(self)):
            if number >= len(before) or before[number] != self.seqs(number, number + 1):
                return number
        return None if len(before) == len(self) else len(self)

    def position(self, seq: int) -> int:
        """The piece that has an entry, or the last one before it; 0 where there is none."""
        index = bisect_right(self.entries_shown, seq) - 1
        return max(0, bisect_right(self.starts, max(index, 0)) - 1)

    def seq(self, position: int) -> int:
        """The entry that a piece begins with."""
        return self.entries_shown[self.starts[position]]

    def seqs(self, first: int, end: int) -> list[int]:
        """The entries of the pieces from `first` and before `end`."""
        begin = self.starts[first] if first < len(self.starts) else len(self.entries_shown)
        return self.entries_shown[begin : self.starts[end] if end < len(self.starts) else None]

    def read(self, first: int, end: int) -> Iterator[list[AnyEntry]]:
        """The entries of each piece from `first` and before `end`, whole."""
        end = min(end, len(self.starts))
        if first >= end:
            return
        wanted = self.seqs(first, end)
        entries: dict[int, AnyEntry] = {}
        chosen = set(wanted)
        for low, high in _stretches(wanted):
            for entry in self.source.forward(low - 1, high + 1):
                if entry.seq in chosen:
                    entries[entry.seq] = entry
        for position in range(first, end):
            yield [entries[seq] for seq in self.seqs(position, position + 1) if seq in entries]

    def landmarks(self) -> list[Landmark]:
        """Prompts, compactions, subagents and errors, oldest first; found once."""
        if self._landmarks is None:
            outline = self.outline
            indexes = [
                index
                for index, (kind, flags) in enumerate(zip(outline.kinds, outline.flags, strict=True))
                if flags & _TELLING or kind in _EVENTS
            ]
            positions = ((outline.seqs[index], index) for index in indexes)
            self._landmarks = [
                Landmark(self.position(seq), outline.item(index)) for seq, index in positions if self.has(seq)
            ]
        return self._landmarks

    def has(self, seq: int) -> bool:
        """Whether a reader sees that entry here."""
        index = bisect_right(self.entries_shown, seq) - 1
        return index >= 0 and self.entries_shown[index] == seq

    def items(self) -> Iterator[tuple[int, OutlineItem]]:
        """Every entry that a reader sees, as the outline has it, with the piece that it is in."""
        position = -1
        starts = iter(self.starts)
        following = next(starts, None)
        index = 0
        for number, seq in enumerate(self.entries_shown):
            if number == following:
                position += 1
                following = next(starts, None)
            while self.outline.seqs[index] != seq:
                index += 1
            yield position, self.outline.item(index)


_GAP = 256


def _stretches(seqs: list[int]) -> Iterator[tuple[int, int]]:
    """The ranges to read. Entries far apart are read separately: between them may lie a branch that was left."""
    low = high = seqs[0]
    for seq in seqs[1:]:
        if seq - high > _GAP:
            yield low, high
            low = seq
        high = seq
    yield low, high
