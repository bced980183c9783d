"""What a session already has of a source: which records, where they are, and what was paid for."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, cast

from turnlog.exchange.carry import CarriedOver
from turnlog.exchange.claim import TurnClaims
from turnlog.formats import Reading, Source, key_id
from turnlog.log.entry import Alias, AnyEntry, Compaction, Entry, Head, Message, Spent, Start
from turnlog.log.usage import Usage
from turnlog.store import derived
from turnlog.thread.history import History

LATE = "late"
_ALL = 1 << 30


class SourceIndex:
    """Grows with every entry that is in the log."""

    def __init__(self, history: History, source: Source, reading: Reading, kept: CarriedOver) -> None:
        self._history = history
        self._source = source
        self._reading = reading
        self.seqs: dict[str, int] = dict(kept.seqs)
        """Where each record is, by its id."""
        self.counts: Counter[str] = Counter()
        """How often each content is there already."""
        self.booked: dict[str, Usage] = dict(kept.booked)
        """What the totals of the source came to when it was last read, by model."""
        self.sizes: dict[int, int] = dict(kept.sizes)
        """How many blocks each answer had."""
        self.unpaid: set[int] = set(kept.unpaid)
        """Answers of which nobody said what they cost."""
        self.late: dict[str, Usage] = dict(kept.late)
        """What answers cost that grew since they were first read, beyond what they said then."""
        self.cursor = kept.cursor
        """The node that the next one of the source follows."""
        self.latest: datetime | None = kept.latest
        """When the newest record of the source was made, as far as records say."""
        self.children: dict[int, list[tuple[int, bool]]] = {}
        """The nodes that follow each one, and whether they came from the source."""
        header = reading.header
        self.claims = TurnClaims(kept.turns, kept.turn, header.created if header.fork is not None else None)
        self.alias: Alias | None = kept.alias
        """Where the session went on under this source's id: what stands before that came from here."""
        self.moved = kept.moved
        """The newest rewind, undo or redo of ours."""
        self.has_own = kept.has_own
        """Whether anything was said here that did not come from the source."""

    def take_in(self, entry: AnyEntry) -> None:
        """An entry that is in the log."""
        self.claims.saw(entry)
        if isinstance(entry, Alias) and (entry.agent, entry.native) == (self._source.agent, self._reading.header.id):
            self.alias = entry
        elif isinstance(entry, Head) and entry.origin is None:
            self.moved = entry.seq
        if entry.parent is not None:
            self.children.setdefault(entry.parent, []).append((entry.seq, entry.origin is not None))
            self.has_own = self.has_own or entry.origin is None
        if entry.origin is None:
            return
        self.seqs[entry.id] = entry.seq
        self.latest = entry.clock or entry.at
        self._count(entry)
        if entry.parent is not None:
            self.cursor = entry.seq
        self.measure(entry)
        if isinstance(entry, Spent) and entry.why == LATE and entry.request is not None:
            self.late[entry.request] = self.late.get(entry.request, Usage()) + entry.usage

    def measure(self, entry: AnyEntry) -> None:
        """How much there is of an answer, and what is paid for."""
        if isinstance(entry, Message) and entry.role == "assistant":
            self.sizes[entry.seq] = len(entry.blocks) if not entry.void else _ALL  # what was erased does not grow
            if entry.usage is None:
                self.unpaid.add(entry.seq)
        elif isinstance(entry, Spent) and entry.why == "import":
            model = entry.model or ""
            self.booked[model] = self.booked.get(model, Usage()) + entry.usage

    def _count(self, entry: Entry) -> None:
        inner = [m for m in entry.replacement if isinstance(m, Message)] if isinstance(entry, Compaction) else []
        for item in (entry, *inner):
            digest, dot, number = item.id.rpartition(".")
            if dot and number.isdigit():
                self.counts[digest] = max(self.counts[digest], int(number))

    def key_of(self, key: str) -> str:
        """The id of the record with that key. Under another id of the session, the agent may use its keys again."""
        return key_id(key if self.alias is None else f"{self.alias.native}/{key}")

    def find(self, name: str) -> int:
        """Where a record is that came long ago; 0 for none."""
        entry = derived.find(self._history.log, name)
        return 0 if entry is None else entry.seq


def origin_of(history: History) -> dict[str, Any]:
    """What the first line of a session says of where it was read."""
    first = next(iter(history.log.read()), None)
    origin = first.origin if isinstance(first, Start) else None
    return cast("dict[str, Any]", origin) if isinstance(origin, dict) else {}
