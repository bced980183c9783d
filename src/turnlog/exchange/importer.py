"""What is new in a session of another agent, appended to the session it is here.

A source whose records have keys of their own is read against the keys that are here. In any other, content tells
records apart: where the source kept its beginning and went on, only the rest is new; where it threw its beginning away
for a summary, that is a compaction here; anything else it changed is a branch. Nothing that is here is taken away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.formats import Jump, Problem, Reading, Record, Source, Step, content_key, gist, id_of, key_id, overlap
from turnlog.log.draft import prepare
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Compaction, Edit, Entry, Message, Note, Set, Spent
from turnlog.log.payload import digest as digest_of
from turnlog.log.secret import mask
from turnlog.log.usage import Usage
from turnlog.store import Store, derived
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader
from turnlog.thread.target import rewind_to

_BATCH = 200
_BATCH_BYTES = 1 << 20
_COUNTS = Usage.__struct_fields__[:-1]
_LATE = "late"
_TITLE = "source_title"
"""The fact that says which title came from the source: another one was given here, and stays."""


class Importer:
    """Takes one reading into one session."""

    def __init__(
        self, store: Store, appender: Appender, source: Source, reading: Reading, written: datetime | None
    ) -> None:
        self._store = store
        self._appender = appender
        self._history = appender.history
        self._session = SessionReader(appender.history)
        self._source = source
        self._reading = reading
        self._origin = {"agent": source.agent}
        self.problems: list[Problem] = []
        self.added = 0
        self._batch: list[Entry] = []
        self._batch_bytes = 0
        self._blobs: dict[str, bytes] = {}
        """What entries of the batch refer to."""
        self._seqs: dict[str, int] = {}
        """Where each record is, by its id."""
        self._counts: Counter[str] = Counter()
        """How often each content is there already."""
        self._booked: dict[str, Usage] = {}
        self._sizes: dict[int, int] = {}
        """How many blocks each answer had."""
        self._unpaid: set[int] = set()
        """Answers of which nobody said what they cost."""
        self._late: dict[str, Usage] = {}
        """What answers cost that grew since they were first read, beyond what they said then."""
        self._cursor = 0
        """The node that the next one of the source follows."""
        self._latest: datetime | None = None
        """When the newest record of the source was made, as far as they say."""
        self._written = written
        self._children: dict[int, list[tuple[int, bool]]] = {}
        """The nodes that follow each one, and whether they came from the source."""
        self._came_back = False
        """Whether what was said here is in the source by now: somebody wrote it there."""
        self._is_keyed = False
        self._own_head = self._session.head
        self._look()

    def _look(self) -> None:
        for entry in self._session.entries():
            if entry.parent is not None:
                self._children.setdefault(entry.parent, []).append((entry.seq, entry.origin is not None))
            if entry.origin is None:
                continue
            self._seqs[entry.id] = entry.seq
            self._latest = entry.clock or entry.at
            self._count(entry)
            if entry.parent is not None:
                self._cursor = entry.seq
            if isinstance(entry, Message) and entry.role == "assistant":
                self._sizes[entry.seq] = len(entry.blocks)
                if entry.usage is None:
                    self._unpaid.add(entry.seq)
            if isinstance(entry, Spent) and entry.why == _LATE and entry.request is not None:
                self._late[entry.request] = self._late.get(entry.request, Usage()) + entry.usage
            if isinstance(entry, Spent) and entry.why == "import":
                model = entry.model or ""
                self._booked[model] = self._booked.get(model, Usage()) + entry.usage
        head = self._history.at(self._own_head) if self._own_head else None
        self._is_both = head is not None and head.origin is None

    def _count(self, entry: Entry) -> None:
        inner = [m for m in entry.replacement if isinstance(m, Message)] if isinstance(entry, Compaction) else []
        for item in (entry, *inner):
            digest, dot, number = item.id.rpartition(".")
            if dot and number.isdigit():
                self._counts[digest] = max(self._counts[digest], int(number))

    def run(self, steps: Iterator[Step]) -> None:
        """All of it."""
        first = next(steps, None)
        if first is not None:
            steps = chain([first], steps)
            if isinstance(first, Jump) or first.key is not None:
                self._by_key(steps)
            else:
                self._by_content([step for step in steps if isinstance(step, Record)])
            self._flush()
        self._settle()

    # ── records with keys ─────────────────────────────────────────────────────────────────────────

    def _by_key(self, steps: Iterator[Step]) -> None:
        self._cursor = 0
        self._is_keyed = True
        marks: Counter[str] = Counter()
        for step in steps:
            if isinstance(step, Jump):
                self._move(step)
                continue
            name = id_of(step.key, step.entry, marks)
            known = self._seqs.get(name)
            if known is None:
                self._add(self._named(step, name))
            elif step.entry.is_node:
                self._flush()
                self._cursor = self._grown(step.entry, name, known)
        self._flush()
        if self._session.head not in (self._cursor, self._own_head):
            self._jump(self._cursor, why="branch")  # what was new is not where the source ends

    def _grown(self, entry: AnyEntry, name: str, seq: int) -> int:
        """Which node to go on from. An answer that was still being written when it was last read gets the rest."""
        if not isinstance(entry, Message) or len(entry.blocks) <= self._sizes.get(seq, len(entry.blocks)):
            if isinstance(entry, Message) and seq in self._unpaid and name not in self._late:
                self._pay(entry, name, Usage())
            return seq
        grown = f"{name}~{len(entry.blocks)}"
        known = self._seqs.get(grown)
        if known is not None:
            return known
        before = self._history.at(seq)
        booked = self._late.get(name, Usage())
        if isinstance(before, Message) and before.usage is not None:
            booked = booked + before.usage
        self._cursor = max(seq, *(self._seqs.get(f"{name}~{size}", 0) for size in range(len(entry.blocks))))
        self._add(Edit(id=grown, entry=seq, blocks=entry.blocks, at=entry.at, origin=self._origin))
        self._pay(entry, name, booked)
        self._flush()
        return self._cursor

    def _pay(self, entry: Message, name: str, booked: Usage) -> None:
        """What an answer cost beyond what was known of it."""
        more = _more(entry.usage or Usage(), booked)
        if any(more.values()):
            self._late[name] = self._late.get(name, Usage()) + Usage(**more)
            self._add(Spent(usage=Usage(**more), model=entry.model, why=_LATE, request=name, origin=self._origin))

    def _move(self, move: Jump) -> None:
        self._flush()
        seq = self._seqs.get(key_id(move.to)) if move.to else 0
        if seq is None:
            self.problems.append(Problem(f"goes on after record {move.to!r:.80}, which is not there"))
            return
        self._cursor = seq
        if move.key is not None and key_id(move.key) not in self._seqs:
            self._jump(seq, name=key_id(move.key), why=move.why, at=move.at, origin=move.origin)
            self.added += 1

    # ── records told apart by content ─────────────────────────────────────────────────────────────

    def _by_content(self, records: list[Record]) -> None:
        digests = [content_key(record.entry) for record in records]
        nodes = [index for index, record in enumerate(records) if record.entry.is_node]
        said = [digests[index] for index in nodes]
        before = self._last_reading()
        same = 0
        while same < len(before) and same < len(said) and before[same][0] == said[same]:
            same += 1
        shift, length = 0, same
        self._cursor = before[same - 1][1] if same else 0
        if same < len(before):
            found, reach = overlap([digest for digest, _ in before], said)
            if reach > same:
                shift, length = found, reach
                self._cursor = before[-1][1]
                self._compact([records[nodes[i]] for i in range(shift)], before[-reach][1])
        passed = set(nodes[: shift + length])
        marks: Counter[str] = Counter()
        for index, record in enumerate(records):
            if index in passed:
                continue
            if record.entry.is_node:
                self._add(self._named(record, self._fresh(digests[index])))
                continue
            marks[digests[index]] += 1
            name = f"{digests[index]}.{marks[digests[index]]}"
            if name not in self._seqs:
                self._add(self._named(record, name))

    def _fresh(self, digest: str) -> str:
        self._counts[digest] += 1
        return f"{digest}.{self._counts[digest]}"

    def _last_reading(self) -> list[tuple[str, int]]:
        """What the source said when it was last read: the content and the place of each node, oldest first."""
        path = [entry for entry in self._history.path(self._cursor) if entry.origin is not None]
        found: list[tuple[str, int]] = []
        for entry in reversed(path):
            digest = entry.id.rpartition(".")[0]
            if not isinstance(entry, Compaction) or entry.trigger != "import":
                found.append((digest, entry.seq))
                continue
            whole: Compaction = self._history.whole(entry)
            said = [m.id.rpartition(".")[0] for m in whole.replacement if isinstance(m, Message)]
            summary = [digest] if digest else said
            found = [(key, entry.seq) for key in summary] + [pair for pair in found if pair[1] >= entry.keep > 0]
        return found

    def _compact(self, dropped: list[Record], keep: int) -> None:
        """The source threw its beginning away for a summary. Here the beginning stays."""
        only = dropped[0].entry if len(dropped) == 1 else None
        if isinstance(only, Compaction):
            made = replace(only, id=self._fresh(content_key(only)), keep=keep, trigger="import")
        else:
            replacement: list[Any] = []
            for record in dropped:
                entry = record.entry
                if isinstance(entry, Compaction):
                    replacement += entry.replacement
                elif isinstance(entry, Message):
                    replacement.append(replace(entry, id=self._fresh(content_key(entry))))
            made = Compaction(replacement=replacement, keep=keep, trigger="import")
        self._add(replace(made, origin=made.origin or self._origin, at=made.at or self._latest))
        self._flush()

    # ── appending ─────────────────────────────────────────────────────────────────────────────────

    def _named(self, record: Record, name: str) -> Entry:
        entry = replace(record.entry, id=name, origin=record.entry.origin or self._origin)
        self._blobs.update({digest_of(data): data for data in record.blobs})
        if not record.names:
            return entry
        self._flush()
        places: dict[str, int] = {}
        for field, key in record.names.items():
            seq = self._seqs.get(key_id(key))
            if seq is None:
                self.problems.append(Problem(f"names record {key!r:.80}, which is not there"))
            places[field] = seq or 0
        return replace(entry, **places)

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
            self._latest = entry.at
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
            done = self._append(batch)
        except Invalid as error:
            if len(batch) == 1:
                self.problems.append(Problem(f"a record that cannot be kept: {error.message}"))
                return
            for entry in batch:  # one bad record costs only itself
                self._batch = [entry]
                self._flush()
            return
        for entry in done:
            self._seqs[entry.id] = entry.seq
            self.added += 1
            if entry.parent is not None:
                self._cursor = entry.seq

    def _append(self, entries: list[Any]) -> list[AnyEntry]:
        blobs, self._blobs = self._blobs, {}
        with self._store.keeping() if blobs else nullcontext():
            if blobs:
                derived.put(self._store, blobs)
            return self._appender.append([self._timed(entry) for entry in entries])

    def _timed(self, entry: Any) -> Any:
        """What has no time of its own is as old as the conversation; where that says none, as its file."""
        if entry.at is not None:
            return entry
        known = (self._latest, self._written if entry.is_node or self._latest is None else None)
        return replace(entry, at=max(filter(None, known), default=None))

    def _jump(self, seq: int, *, why: str, name: str = "", at: datetime | None = None, origin: Any = None) -> None:
        """The conversation goes on after that node, wherever it stands here."""
        head = rewind_to(self._history, to=seq, before=None, turns=None)
        head = replace(head, why=why, at=at or self._latest, origin=origin or self._origin)
        done = self._append([replace(head, id=name) if name else head])
        self._seqs[done[0].id] = done[0].seq

    # ── the session as a whole ────────────────────────────────────────────────────────────────────

    def _settle(self) -> None:
        marks: list[Entry] = []
        title = self._reading.header.title
        facts = {**self._reading.facts, **({_TITLE: title} if title else {})}
        given = self._session.get(_TITLE)
        for key, value in facts.items():
            kept, secrets = mask(key, value)
            if self._session.get(key) == kept:
                continue
            if key in WIDE_FACTS:
                self._appender.set(self._timed(Set(key=key, value=kept)))
            else:
                marks.append(Set(key=key, value=kept, at=self._latest, origin=self._origin))
            self.problems += [Problem(f"a secret was left out: {name}") for name in secrets]
        for model, total in self._reading.totals.items():
            more = self._difference(model, total)
            if more is not None:
                marks.append(Spent(usage=more, model=model or None, why="import", at=self._latest, origin=self._origin))
        self._batch = marks
        self._flush()
        if title and title != given and self._session.title in (None, given):
            self._appender.set(self._timed(Set(key="title", value=title)))
        if self._is_both and all(node.seq != self._own_head for node in self._history.path(self._session.head)):
            self._jump(self._own_head, why="branch")
            self.problems.append(Problem("it went on both here and there: what is new there is a branch here"))
        found = [problem for problem in self._reading.problems if not problem.is_news]
        if self.added and found:
            text = f"{self._source.path} was read with {len(found)} problem{'s' * (len(found) != 1)}"
            self._append([Note(text=text, data=msgspec.to_builtins(found[:100]), at=self._latest)])

    def _difference(self, model: str, total: Usage) -> Usage | None:
        """What was spent since the last time, of a running total."""
        booked = self._booked.get(model, Usage())
        if len(self._reading.totals) == 1:  # of the whole session, under the model of the day
            booked = sum(self._booked.values(), Usage())
            if self._came_back:  # with what was spent here
                booked = self._session.usage().own
        more: dict[str, int] = {name: getattr(total, name) - getattr(booked, name) for name in _COUNTS}
        cost = None if total.cost_micros is None else total.cost_micros - (booked.cost_micros or 0)
        if min(*more.values(), cost or 0) < 0:
            self.problems.append(Problem("its totals are smaller than when it was last read: nothing is taken back"))
            more = {name: max(0, value) for name, value in more.items()}
            cost = None if cost is None else max(0, cost)
        return Usage(**more, cost_micros=cost or None) if any(more.values()) or cost else None


def _more(usage: Usage, booked: Usage) -> dict[str, int]:
    return {name: max(0, getattr(usage, name) - getattr(booked, name)) for name in _COUNTS}


def _weight(entry: Entry) -> int:
    if not isinstance(entry, Message):
        return 200
    return 200 + sum(len(getattr(block, "text", "") or "") for block in entry.blocks)
