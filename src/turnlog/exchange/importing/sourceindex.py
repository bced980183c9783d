"""What a session already has of a source: the entries of its records, and the usage that is booked."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from turnlog.exchange.importing.resumestate import ResumeState
from turnlog.exchange.importing.turnclaim import TurnClaims
from turnlog.formats import Reading, Source
from turnlog.log.entry import Alias, AnyEntry, Compaction, Edit, Entry, Head, Message, Spent
from turnlog.log.identity import key_id
from turnlog.log.startup import NamedTuple
from turnlog.log.usage import Usage
from turnlog.store import derived
from turnlog.thread.history import History

GROWN_ANSWER = "late"
"""Why usage was spent: an answer was still being written when it was first read. `Spent.why` has this text."""
_ALL_BLOCKS = 1 << 30
"""More blocks than any answer has: what was erased does not grow."""


def growth_id(entry_id: str, blocks: int) -> str:
    """The id of what an answer grew by until it had so many blocks; that of the answer stands before the `~`."""
    return f"{entry_id}~{blocks}"


class ChildNode(NamedTuple):
    """A node that follows another one."""

    seq: int
    is_from_source: bool


class SourceIndex:
    """What is known of the entries that came from one source. Every entry of the log is added to it."""

    def __init__(self, history: History, source: Source, reading: Reading, state: ResumeState) -> None:
        self._history = history
        self._source = source
        self._reading = reading
        self.seqs: dict[str, int] = dict(state.seqs)
        """The entry of each record, by its id."""
        self.counts: Counter[str] = Counter()
        """How often each content is in the log, by its digest."""
        self.booked: dict[str, Usage] = dict(state.booked)
        """The totals of the source when it was last read, by model."""
        self.sizes: dict[int, int] = dict(state.sizes)
        """The number of blocks of each prompt and answer."""
        self.unpaid: set[int] = set(state.unpaid)
        """The answers without usage."""
        self.late: dict[str, Usage] = dict(state.late)
        """The usage of answers that grew since they were first read, beyond the usage they had then, by the record."""
        self.edits: dict[int, int] = dict(state.edits)
        """The edits with what messages grew by, each by the node that it follows."""
        self.cursor = state.cursor
        """The node that the next node of the source follows."""
        self.latest: datetime | None = state.latest
        """The time of the newest record of the source that has one."""
        self.children: dict[int, list[ChildNode]] = {}
        """The nodes that follow each node."""
        header = reading.header
        self.claims = TurnClaims(state.turns, state.turn, header.created if header.fork is not None else None)
        self.alias: Alias | None = state.alias
        """The point from which the session goes on under the id of this source: the records before it are from here."""
        self.moved = state.moved
        """The newest rewind, undo or redo that was made here."""
        self.has_own = state.has_own
        """Whether anything was said here that did not come from the source."""

    def take_in(self, entry: AnyEntry) -> None:
        """Take note of an entry of the log."""
        self.claims.take_in(entry)
        if isinstance(entry, Alias) and (entry.agent, entry.native) == (self._source.agent, self._reading.header.id):
            self.alias = entry
        elif isinstance(entry, Head) and entry.origin is None:
            self.moved = entry.seq
        if entry.parent is not None:
            self.children.setdefault(entry.parent, []).append(ChildNode(entry.seq, entry.origin is not None))
            self.has_own = self.has_own or entry.origin is None
        if entry.origin is None:
            return
        self.seqs[entry.id] = entry.seq
        self.latest = entry.clock or entry.at
        self._count(entry)
        if entry.parent is not None:
            self.cursor = entry.seq
        self.measure(entry)
        if isinstance(entry, Spent) and entry.why == GROWN_ANSWER and entry.request is not None:
            record = entry.request.rpartition("~")[0] or entry.request  # earlier versions wrote only the record
            self.late[record] = self.late.get(record, Usage()) + entry.usage

    def measure(self, entry: AnyEntry) -> None:
        """Take note of the size of a message, of what it grew by, and of booked usage."""
        if isinstance(entry, Message) and entry.role in ("assistant", "user"):
            self.sizes[entry.seq] = len(entry.blocks) if not entry.void else _ALL_BLOCKS
            if entry.role == "assistant" and entry.usage is None:
                self.unpaid.add(entry.seq)
        elif isinstance(entry, Spent) and entry.why == "import":
            model = entry.model or ""
            self.booked[model] = self.booked.get(model, Usage()) + entry.usage
        elif isinstance(entry, Edit) and self.seqs.get(entry.id.rpartition("~")[0]) == entry.entry:
            self.edits[entry.parent or 0] = entry.seq

    def grown(self, node: int) -> int:
        """The node from which the source continues after this one: the last edit with what a message grew by."""
        while node in self.edits:
            node = self.edits[node]
        return node

    def was_moved_here(self) -> bool:
        """Whether the head was moved here since the newest turn: then the agent has not continued, and it stays."""
        turns = self.claims.reported.values()
        return self.moved > 0 and all(turn.seq < self.moved for turn in turns)

    def _count(self, entry: Entry) -> None:
        inner = [m for m in entry.replacement if isinstance(m, Message)] if isinstance(entry, Compaction) else []
        for item in (entry, *inner):
            digest, dot, number = item.id.rpartition(".")
            if dot and number.isdigit():
                self.counts[digest] = max(self.counts[digest], int(number))

    def key_of(self, key: str) -> str:
        """The id of the record with that key. Under another id of the session, the agent may use its keys again."""
        return key_id(key if self.alias is None else f"{self.alias.native}/{key}")

    def find(self, entry_id: str) -> int:
        """The entry of a record that was imported long ago; 0 if there is none."""
        entry = derived.find(self._history.log, entry_id)
        return 0 if entry is None else entry.seq
