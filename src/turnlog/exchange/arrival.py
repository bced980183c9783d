"""How records of another agent get into a session: what of them is here already, and what hangs on what.

Where it was left the last time is carried over: then only what is new is read, there and here.
"""

from __future__ import annotations

from collections import Counter, deque
from contextlib import nullcontext
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from turnlog.errors import Conflict, Invalid
from turnlog.exchange.carry import CarriedOver
from turnlog.exchange.claim import TurnClaims
from turnlog.formats import Problem, Reading, Record, Source, gist, id_of, key_id
from turnlog.log.draft import prepare
from turnlog.log.entry import Alias, AnyEntry, Compaction, Entry, Head, Message, Spent, Start
from turnlog.log.erasure.content import stripped, void_of
from turnlog.log.payload import digest as digest_of
from turnlog.log.promptmessage import is_prompt
from turnlog.log.usage import Usage
from turnlog.store import Store, derived
from turnlog.thread.appender import Appender
from turnlog.thread.history import History
from turnlog.thread.reader import SessionReader
from turnlog.thread.target import rewind_to

_BATCH = 200
_BATCH_BYTES = 1 << 20
LATE = "late"
_ALL = 1 << 30
_STEPS = 4096
"""How many steps back the place can lie from which the next reading goes on."""


class Arrival:
    """What is known of one session and one source, and how records of that become entries."""

    def __init__(
        self,
        store: Store,
        appender: Appender,
        source: Source,
        reading: Reading,
        written: datetime | None,
        carried: CarriedOver | None = None,
    ) -> None:
        self._store = store
        self._appender = appender
        self._history = appender.history
        self._session = SessionReader(appender.history)
        self._source = source
        self._reading = reading
        self._origin = {"agent": source.agent}
        self.problems: list[Problem] = []
        self.added: int = 0
        self._batch: list[Entry] = []
        self._batch_bytes = 0
        self._blobs: dict[str, bytes] = {}
        """What entries of the batch refer to."""
        kept = carried or CarriedOver()
        self._seqs: dict[str, int] = dict(kept.seqs)
        """Where each record is, by its id."""
        self._counts: Counter[str] = Counter()
        """How often each content is there already."""
        self._booked: dict[str, Usage] = dict(kept.booked)
        self._sizes: dict[int, int] = dict(kept.sizes)
        """How many blocks each answer had."""
        self._unpaid: set[int] = set(kept.unpaid)
        """Answers of which nobody said what they cost."""
        self._late: dict[str, Usage] = dict(kept.late)
        """What answers cost that grew since they were first read, beyond what they said then."""
        self._cursor = kept.cursor
        """The node that the next one of the source follows."""
        self._latest: datetime | None = kept.latest
        """When the newest record of the source was made, as far as records say."""
        self._tells_time = False
        """Whether new records say when they were made; else they are as new as their file."""
        self._written = written
        self._children: dict[int, list[tuple[int, bool]]] = {}
        """The nodes that follow each one, and whether they came from the source."""
        self._came_back = False
        """Whether what was said here is in the source by now: somebody wrote it there."""
        self._is_keyed = False
        self._own_head = self._session.head
        erasures = derived.erasures(store, self._history.first).get(self._history.first, [])
        self._gone = {one.id for one in erasures if not one.part}
        """What was erased here does not come back, also not with the whole session."""
        header = reading.header
        self._claims = TurnClaims(kept.turns, kept.turn, header.created if header.fork is not None else None)
        self._alias: Alias | None = kept.alias
        """Where the session went on under this source's id: what stands before that came from here."""
        self._moved = kept.moved
        """The newest rewind, undo or redo of ours."""
        self._marks: Counter[str] = Counter(kept.marks)
        """How often each content came that has no key."""
        self._number = kept.steps
        """How many steps there were."""
        self._trail: deque[tuple[str, str, int | str, str | None]] = deque(maxlen=_STEPS)
        """Of the last steps: its name, the content that was counted, and the cursor and turn before it."""
        self.has_own = kept.has_own
        """Whether anything was said here that did not come from the source."""
        self._look(kept.seq)
        self._is_grown = carried is not None
        if self._is_grown:
            self._cursor = kept.cursor  # where it stood at the mark

    def _look(self, after: int) -> None:
        for entry in self._session.entries(after=after):
            self._take_in(entry)
        head = self._history.at(self._own_head) if self._own_head else None
        self._is_both = head is not None and head.origin is None

    def _take_in(self, entry: AnyEntry) -> None:
        """An entry that is in the log."""
        self._claims.saw(entry)
        if isinstance(entry, Alias) and (entry.agent, entry.native) == (self._source.agent, self._reading.header.id):
            self._alias = entry
        elif isinstance(entry, Head) and entry.origin is None:
            self._moved = entry.seq
        if entry.parent is not None:
            self._children.setdefault(entry.parent, []).append((entry.seq, entry.origin is not None))
            self.has_own = self.has_own or entry.origin is None
        if entry.origin is None:
            return
        self._seqs[entry.id] = entry.seq
        self._latest = entry.clock or entry.at
        self._count(entry)
        if entry.parent is not None:
            self._cursor = entry.seq
        self._measure(entry)
        if isinstance(entry, Spent) and entry.why == LATE and entry.request is not None:
            self._late[entry.request] = self._late.get(entry.request, Usage()) + entry.usage

    def _measure(self, entry: AnyEntry) -> None:
        """How much there is of an answer, and what is paid for."""
        if isinstance(entry, Message) and entry.role == "assistant":
            self._sizes[entry.seq] = len(entry.blocks) if not entry.void else _ALL  # what was erased does not grow
            if entry.usage is None:
                self._unpaid.add(entry.seq)
        elif isinstance(entry, Spent) and entry.why == "import":
            model = entry.model or ""
            self._booked[model] = self._booked.get(model, Usage()) + entry.usage

    def _count(self, entry: Entry) -> None:
        inner = [m for m in entry.replacement if isinstance(m, Message)] if isinstance(entry, Compaction) else []
        for item in (entry, *inner):
            digest, dot, number = item.id.rpartition(".")
            if dot and number.isdigit():
                self._counts[digest] = max(self._counts[digest], int(number))

    def _key(self, key: str) -> str:
        """The id of the record with that key. Under another id of the session, the agent may use its keys again."""
        return key_id(key if self._alias is None else f"{self._alias.native}/{key}")

    def _name(self, record: Record) -> str:
        if record.key is not None:
            return self._key(record.key)
        name = id_of(None, record.entry, self._marks)
        return name if self._alias is None else f"{self._alias.native}/{name}"

    def _pass(self, name: str, mark: str = "") -> None:
        """A step is about to be taken."""
        pending = next((entry.id for entry in reversed(self._batch) if entry.is_node), None)
        self._trail.append((name, mark, pending or self._cursor, self._claims.now))
        self._number += 1

    def carry(self) -> CarriedOver | None:
        """What the next reading has to know to go on from the mark of this one; None if it has to read all."""
        mark = self._reading.mark
        first = self._number - len(self._trail)
        if mark is None or not self._is_keyed or not first <= mark.steps <= self._number:
            return None
        ahead = list(self._trail)[mark.steps - first :]
        cursor = ahead[0][2] if ahead else self._cursor
        turn = ahead[0][3] if ahead else self._claims.now
        marks = self._marks.copy()
        marks.subtract(content for _, content, _, _ in ahead if content)
        names = {name for name, _, _, _ in ahead if name in self._seqs}
        names |= {name for name in self._seqs if name.partition("~")[0] in names}
        seqs = {name: self._seqs[name] for name in names}
        there = set(seqs.values())
        return CarriedOver(
            seq=self._history.state.seq, steps=mark.steps, seqs=seqs, booked=self._booked,
            sizes={seq: size for seq, size in self._sizes.items() if seq in there},
            unpaid=[seq for seq in self._unpaid if seq in there],
            late={name: usage for name, usage in self._late.items() if name in names},
            cursor=self._seqs.get(cursor, 0) if isinstance(cursor, str) else cursor, latest=self._latest,
            turns=self._claims.recent(), turn=turn, alias=self._alias, moved=self._moved,
            marks={content: count for content, count in marks.items() if count}, has_own=self.has_own,
        )  # fmt: skip

    def _named(self, record: Record, name: str, turn: str | None = None) -> Entry:
        entry = replace(record.entry, id=name, origin=record.entry.origin or self._origin)
        if turn is not None:
            entry = replace(entry, turn=turn)
        if name in self._gone:
            entry = replace(stripped(entry), void=void_of(entry, is_prompt))
        else:
            self._blobs.update({digest_of(data): data for data in record.blobs})
        if not record.names:
            return entry
        self._flush()
        places: dict[str, int] = {}
        for field, key in record.names.items():
            seq = self._seqs.get(self._key(key)) or self._found(self._key(key))
            if not seq:
                self.problems.append(Problem(f"names record {key!r:.80}, which is not there"))
            places[field] = seq
        return replace(entry, **places)

    def _found(self, name: str) -> int:
        """Where a record is that came long ago."""
        entry = derived.find(self._history.log, name)
        return 0 if entry is None else entry.seq

    def _is_ours(self, entry: Entry) -> bool:
        """Whether that is what was said here after the same node: then it came back from there, and is not new."""
        if self._batch_has_nodes() or not (wanted := gist(entry)):
            return False
        for seq, is_theirs in self._children.get(self._cursor, []):
            if is_theirs and (self._is_keyed or not self._came_back):
                continue
            if gist(self._history.whole(self._history.at(seq))) == wanted:
                self._flush()
                self._came_back = True
                self._cursor = self._seqs[entry.id] = seq
                return True
        return False

    def _add(self, entry: Entry) -> None:
        if entry.is_node and self._children.get(self._cursor) and self._is_ours(entry):
            return
        if entry.is_node and not self._batch_has_nodes() and self._session.head != self._cursor:
            self._flush()
            try:
                prepare(entry)
            except Invalid as error:  # nothing is moved for what cannot be kept
                self.problems.append(Problem(f"a record that cannot be kept: {error.message}"))
                return
            self._jump(self._cursor, why="branch")
        if entry.at is not None:
            self._latest, self._tells_time = entry.at, True
        elif self._tells_time:
            entry = replace(entry, at=self._latest)
        self._batch.append(entry)
        self._batch_bytes += _weight(entry)
        if len(self._batch) >= _BATCH or self._batch_bytes >= _BATCH_BYTES:
            self._flush()

    def _batch_has_nodes(self) -> bool:
        return any(entry.is_node for entry in self._batch)

    def _flush(self) -> None:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        try:
            appended = self._append(batch)
        except Invalid as error:
            if len(batch) == 1:
                self.problems.append(Problem(f"a record that cannot be kept: {error.message}"))
                return
            for entry in batch:  # one bad record costs only itself
                self._batch = [entry]
                self._flush()
            return
        for entry in appended:
            self._seqs[entry.id] = entry.seq
            self._measure(entry)
            self.added += 1
            if entry.parent is not None:
                self._cursor = entry.seq

    def _append(self, entries: list[Any]) -> list[AnyEntry]:
        blobs, self._blobs = self._blobs, {}
        with self._store.keeping() if blobs else nullcontext():
            if blobs:
                derived.put(self._store, blobs)
            return self._behind([self._timed(entry) for entry in entries])

    def _behind(self, entries: list[Any]) -> list[AnyEntry]:
        """Append behind all that is known: then none of it can be there. Hooks and others may be faster."""
        while entries:
            derived.vouch(self._history.log, (entry.id for entry in entries))
            try:
                return self._appender.append(entries, alone=True)
            except Conflict:
                last_seq = self._history.state.seq
                self._appender.catch_up()
                cursor = self._cursor
                for entry in self._session.entries(after=last_seq):
                    self._take_in(entry)
                self._cursor = cursor
                entries = [entry for entry in entries if entry.id not in self._seqs]
        return []

    def _timed(self, entry: Any) -> Any:
        """What has no time of its own is as old as the conversation; where that says none, as its file."""
        if entry.at is not None:
            return entry
        is_of_now = entry.is_node and not self._tells_time
        times = (self._latest, self._written if is_of_now or self._latest is None else None)
        return replace(entry, at=max(filter(None, times), default=None))

    def _jump(self, seq: int, *, why: str, name: str = "", at: datetime | None = None, origin: Any = None) -> None:
        """The conversation goes on after that node, wherever it stands here."""
        head = rewind_to(self._history, to=seq, before=None, turns=None)
        head = replace(head, why=why, at=at or self._latest, origin=origin or self._origin)
        appended = self._append([replace(head, id=name) if name else head])
        self._seqs[appended[0].id] = appended[0].seq


def _weight(entry: Entry) -> int:
    if not isinstance(entry, Message):
        return 200
    return 200 + sum(len(getattr(block, "text", "") or "") for block in entry.blocks)


def origin_of(history: History) -> dict[str, Any]:
    """What the first line of a session says of where it was read."""
    first = next(iter(history.log.read()), None)
    origin = first.origin if isinstance(first, Start) else None
    return cast("dict[str, Any]", origin) if isinstance(origin, dict) else {}
