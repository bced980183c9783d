"""What is new in a session of another agent, appended to the session it is here.

A source whose records have keys of their own is read against the keys that are here. In any other, content tells
records apart: where the source kept its beginning and went on, only the rest is new; where it threw its beginning away
for a summary, that is a compaction here; anything else it changed is a branch. Nothing that is here is taken away.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.exchange import HEADER
from turnlog.exchange.batch import EntryBatch
from turnlog.exchange.carry import CarriedOver
from turnlog.exchange.sourceindex import LATE, SourceIndex, origin_of
from turnlog.formats import Jump, Problem, Reading, Record, Source, Step, content_key, gist, id_of, overlap
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Compaction, Edit, Entry, Message, Note, Set, Spent
from turnlog.log.erasure.content import stripped, void_of
from turnlog.log.secret import mask
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.log.usage import Usage
from turnlog.store import Store, derived
from turnlog.thread.appender import Appender
from turnlog.thread.reader import SessionReader

_COUNTS = Usage.__struct_fields__[:-1]
_TITLE = "source_title"
"""The fact that says which title came from the source: another one was given here, and stays."""
_STEPS = 4096
"""How many steps back the place can lie from which the next reading goes on."""


class Importer:
    """Takes one reading into one session."""

    def __init__(
        self,
        store: Store,
        appender: Appender,
        source: Source,
        reading: Reading,
        written: datetime | None,
        carried: CarriedOver | None = None,
    ) -> None:
        kept = carried or CarriedOver()
        self._appender = appender
        self._history = appender.history
        self._session = SessionReader(appender.history)
        self._source = source
        self._reading = reading
        self._origin = {"agent": source.agent}
        self._index = SourceIndex(appender.history, source, reading, kept)
        self._batch = EntryBatch(store, appender, self._index, self._origin, written)
        self._own_head = self._session.head
        erasures = derived.erasures(store, self._history.first).get(self._history.first, [])
        self._gone = {one.id for one in erasures if not one.part}
        """What was erased here does not come back, also not with the whole session."""
        self._marks: Counter[str] = Counter(kept.marks)
        """How often each content came that has no key."""
        self._number = kept.steps
        """How many steps there were."""
        self._trail: deque[tuple[str, str, int | str, str | None]] = deque(maxlen=_STEPS)
        """Of the last steps: its name, the content that was counted, and the cursor and turn before it."""
        for entry in self._session.entries(after=kept.seq):
            self._index.take_in(entry)
        head = self._history.at(self._own_head) if self._own_head else None
        self._is_both = head is not None and head.origin is None
        self._is_grown = carried is not None
        if self._is_grown:
            self._index.cursor = kept.cursor  # where it stood at the mark

    @property
    def added(self) -> int:
        """How many entries were new."""
        return self._batch.added

    @property
    def problems(self) -> list[Problem]:
        """What could not be brought as it is."""
        return self._batch.problems

    def run(self, steps: Iterator[Step]) -> None:
        """All of it."""
        first = next(steps, None)
        if first is not None:
            steps = chain([first], steps)
            if isinstance(first, Jump) or first.key is not None:
                self._by_key(steps)
            else:
                self._by_content([step for step in steps if isinstance(step, Record)])
            self._batch.flush()
        self._settle()

    def _by_key(self, steps: Iterator[Step]) -> None:
        if not self._number:
            self._index.cursor = 0
        self._batch.is_keyed = True
        carried = self._placed() if self._index.alias is not None else []
        empty: tuple[Record, str] | None = None
        for step in steps:
            if empty is not None:
                self._take(*empty)
                empty = None
            if isinstance(step, Jump):
                self._pass("")
                self._move(step)
                continue
            name = self._name(step)
            self._pass(name, "" if step.key is not None else content_key(step.entry))
            if self._index.alias is not None and self._number <= self._index.alias.records:
                self._index.seqs[name] = self._index.cursor = next_place(carried, step, self._index.cursor)
                continue
            if _is_empty(step.entry):
                empty = step, name  # as the last one, it is still being written: the next time it says something
            else:
                self._take(step, name)
        self._batch.flush()
        if self._session.head not in (self._index.cursor, self._own_head) and not self._was_moved_here():
            self._batch.jump(self._index.cursor, why="branch")  # what was new is not where the source ends

    def _take(self, step: Record, name: str) -> None:
        """One record; of a turn that hooks told of, the ends are there already."""
        told_turn = self._index.claims.told_turn(step.entry)
        if told_turn is not None:
            self._index.seqs[name] = told_turn.seq
            return
        seq = self._index.seqs.get(name)
        turn = self._index.claims.turn_of(step, name, is_known=seq is not None)
        if seq is None:
            self._batch.add(self._named(step, name, turn))
        elif step.entry.is_node:
            self._batch.flush()
            self._index.cursor = self._grown(step.entry, name, seq)

    def _placed(self) -> list[tuple[str, int]]:
        """What was said when the session went on under this source's id, the newest first, and where it is."""
        assert self._index.alias is not None
        return [(gist(self._history.whole(node)), node.seq) for node in self._history.path(self._index.alias.head)]

    def _was_moved_here(self) -> bool:
        """Whether it was moved here since the newest turn: then nothing went on there, and it stays."""
        moved, turns = self._index.moved, self._index.claims.told.values()
        return moved > 0 and all(turn.seq < moved for turn in turns)

    def _grown(self, entry: AnyEntry, name: str, seq: int) -> int:
        """Which node to go on from. An answer that was still being written when it was last read gets the rest."""
        if not isinstance(entry, Message) or len(entry.blocks) <= self._index.sizes.get(seq, len(entry.blocks)):
            if isinstance(entry, Message) and seq in self._index.unpaid and name not in self._index.late:
                self._pay(entry, name, Usage())
            return seq
        grown = f"{name}~{len(entry.blocks)}"
        known_seq = self._index.seqs.get(grown)
        if known_seq is not None:
            return known_seq
        before = self._history.at(seq)
        booked = self._index.late.get(name, Usage())
        if isinstance(before, Message) and before.usage is not None:
            booked = booked + before.usage
        self._index.cursor = max(seq, *(self._index.seqs.get(f"{name}~{size}", 0) for size in range(len(entry.blocks))))
        self._batch.add(Edit(id=grown, entry=seq, blocks=entry.blocks, at=entry.at, origin=self._origin))
        self._pay(entry, name, booked)
        self._batch.flush()
        return self._index.cursor

    def _pay(self, entry: Message, name: str, booked: Usage) -> None:
        """What an answer cost beyond what was known of it."""
        more = _more(entry.usage or Usage(), booked)
        if any(more.values()):
            self._index.late[name] = self._index.late.get(name, Usage()) + Usage(**more)
            self._batch.add(Spent(usage=Usage(**more), model=entry.model, why=LATE, request=name, origin=self._origin))

    def _move(self, move: Jump) -> None:
        self._batch.flush()
        to = self._index.key_of(move.to)
        seq = (self._index.seqs.get(to) or self._index.find(to) or None) if move.to else 0
        if seq is None:
            self._batch.problems.append(Problem(f"goes on after record {move.to!r:.80}, which is not there"))
            return
        self._index.cursor = seq
        name = "" if move.key is None else self._index.key_of(move.key)
        is_known = name in self._index.seqs or (self._is_grown and self._index.find(name))
        if name and not is_known and not self._was_moved_here():
            self._batch.jump(seq, name=name, why=move.why, at=move.at, origin=move.origin)
            self._batch.added += 1

    def _by_content(self, records: list[Record]) -> None:
        digests = [content_key(record.entry) for record in records]
        nodes = [index for index, record in enumerate(records) if record.entry.is_node]
        now = [digests[index] for index in nodes]
        before = self._last_reading()
        same = 0
        while same < len(before) and same < len(now) and before[same][0] == now[same]:
            same += 1
        shift, length = 0, same
        self._index.cursor = before[same - 1][1] if same else 0
        if same < len(before):
            shared, reach = overlap([digest for digest, _ in before], now)
            if reach > same:
                shift, length = shared, reach
                self._index.cursor = before[-1][1]
                self._compact([records[nodes[i]] for i in range(shift)], before[-reach][1])
        passed = set(nodes[: shift + length])
        marks: Counter[str] = Counter()
        for index, record in enumerate(records):
            if index in passed:
                continue
            if record.entry.is_node:
                self._batch.add(self._named(record, self._fresh(digests[index])))
                continue
            marks[digests[index]] += 1
            name = f"{digests[index]}.{marks[digests[index]]}"
            if name not in self._index.seqs:
                self._batch.add(self._named(record, name))

    def _fresh(self, digest: str) -> str:
        self._index.counts[digest] += 1
        return f"{digest}.{self._index.counts[digest]}"

    def _last_reading(self) -> list[tuple[str, int]]:
        """What the source said when it was last read: the content and the place of each node, oldest first."""
        path = [entry for entry in self._history.path(self._index.cursor) if entry.origin is not None]
        pairs: list[tuple[str, int]] = []
        for entry in reversed(path):
            digest = entry.id.rpartition(".")[0]
            if not isinstance(entry, Compaction) or entry.trigger != "import":
                pairs.append((digest, entry.seq))
                continue
            whole: Compaction = self._history.whole(entry)
            replaced = [m.id.rpartition(".")[0] for m in whole.replacement if isinstance(m, Message)]
            summary = [digest] if digest else replaced
            pairs = [(key, entry.seq) for key in summary] + [pair for pair in pairs if pair[1] >= entry.keep > 0]
        return pairs

    def _compact(self, dropped: list[Record], keep: int) -> None:
        """The source threw its beginning away for a summary. Here the beginning stays."""
        only = dropped[0].entry if len(dropped) == 1 else None
        if isinstance(only, Compaction):
            compaction = replace(only, id=self._fresh(content_key(only)), keep=keep, trigger="import")
        else:
            replacement: list[Any] = []
            for record in dropped:
                entry = record.entry
                if isinstance(entry, Compaction):
                    replacement += entry.replacement
                elif isinstance(entry, Message):
                    replacement.append(replace(entry, id=self._fresh(content_key(entry))))
            compaction = Compaction(replacement=replacement, keep=keep, trigger="import")
        origin, at = compaction.origin or self._origin, compaction.at or self._index.latest
        self._batch.add(replace(compaction, origin=origin, at=at))
        self._batch.flush()

    def _settle(self) -> None:
        title = self._reading.header.title
        facts = {**self._reading.facts, **({_TITLE: title} if title else {}), **self._header()}
        given = self._session.get(_TITLE)
        for key, value in facts.items():
            kept, secrets = mask(key, value)
            if self._session.get(key) == kept:
                continue
            if key in WIDE_FACTS:
                self._appender.set(self._batch.timed(Set(key=key, value=kept)))
            else:
                self._batch.add(Set(key=key, value=kept, at=self._index.latest, origin=self._origin))
            self._batch.problems += [Problem(f"a secret was left out: {name}") for name in secrets]
        for model, total in self._reading.totals.items():
            more = self._difference(model, total)
            if more is not None:
                at = self._index.latest
                self._batch.add(Spent(usage=more, model=model or None, why="import", at=at, origin=self._origin))
        self._batch.flush()
        if title and title != given and self._session.title in (None, given):
            self._appender.set(self._batch.timed(Set(key="title", value=title)))
        if self._was_moved_here() and self._session.head != self._own_head:
            self._batch.jump(self._own_head, why="branch")
        elif self._is_both and all(node.seq != self._own_head for node in self._history.path(self._session.head)):
            self._batch.jump(self._own_head, why="branch")
            self._batch.problems.append(Problem("it went on both here and there: what is new there is a branch here"))
        problems = [problem for problem in self._reading.problems if not problem.is_news]
        if self._batch.added and problems:
            text = f"{self._source.path} was read with {len(problems)} problem{'s' * (len(problems) != 1)}"
            self._batch.append([Note(text=text, data=msgspec.to_builtins(problems[:100]), at=self._index.latest)])

    def _header(self) -> dict[str, Any]:
        """What the source says of itself, where the session was made before anybody could read that."""
        origin, header = origin_of(self._history) if self._history.state.is_relayed else {}, self._reading.header
        created = None if header.created is None else header.created.isoformat()
        if origin.get("id") != header.id or "header" in origin or not (header.origin or created):
            return {}
        return {HEADER: {"origin": header.origin, "created": created}}

    def _difference(self, model: str, total: Usage) -> Usage | None:
        """What was spent since the last time, of a running total."""
        booked = self._index.booked.get(model, Usage())
        if len(self._reading.totals) == 1:  # of the whole session, under the model of the day
            booked = sum(self._index.booked.values(), Usage())
            own = self._session.usage().own
            if self._batch.came_back and not any(_more(own, total).values()):  # with what was spent here
                booked = own
        more: dict[str, int] = {name: getattr(total, name) - getattr(booked, name) for name in _COUNTS}
        cost = None if total.cost_micros is None else total.cost_micros - (booked.cost_micros or 0)
        if min(*more.values(), cost or 0) < 0:
            what = "its totals are smaller than when it was last read: nothing is taken back"
            self._batch.problems.append(Problem(what))
            more = {name: max(0, value) for name, value in more.items()}
            cost = None if cost is None else max(0, cost)
        return Usage(**more, cost_micros=cost or None) if any(more.values()) or cost else None

    def _name(self, record: Record) -> str:
        if record.key is not None:
            return self._index.key_of(record.key)
        name = id_of(None, record.entry, self._marks)
        return name if self._index.alias is None else f"{self._index.alias.native}/{name}"

    def _pass(self, name: str, mark: str = "") -> None:
        """A step is about to be taken."""
        self._trail.append((name, mark, self._batch.pending or self._index.cursor, self._index.claims.now))
        self._number += 1

    def _named(self, record: Record, name: str, turn: str | None = None) -> Entry:
        entry = replace(record.entry, id=name, origin=record.entry.origin or self._origin)
        if turn is not None:
            entry = replace(entry, turn=turn)
        if name in self._gone:
            entry = replace(stripped(entry), void=void_of(entry, is_prompt))
        else:
            self._batch.put_blobs(record.blobs)
        if not record.names:
            return entry
        self._batch.flush()
        places: dict[str, int] = {}
        for field, key in record.names.items():
            seq = self._index.seqs.get(self._index.key_of(key)) or self._index.find(self._index.key_of(key))
            if not seq:
                self._batch.problems.append(Problem(f"names record {key!r:.80}, which is not there"))
            places[field] = seq
        return replace(entry, **places)

    def carry(self) -> CarriedOver | None:
        """What the next reading has to know to go on from the mark of this one; None if it has to read all."""
        mark = self._reading.mark
        first = self._number - len(self._trail)
        if mark is None or not self._batch.is_keyed or not first <= mark.steps <= self._number:
            return None
        ahead = list(self._trail)[mark.steps - first :]
        cursor = ahead[0][2] if ahead else self._index.cursor
        turn = ahead[0][3] if ahead else self._index.claims.now
        marks = self._marks.copy()
        marks.subtract(content for _, content, _, _ in ahead if content)
        names = {name for name, _, _, _ in ahead if name in self._index.seqs}
        names |= {name for name in self._index.seqs if name.partition("~")[0] in names}
        seqs = {name: self._index.seqs[name] for name in names}
        there = set(seqs.values())
        return CarriedOver(
            seq=self._history.state.seq, steps=mark.steps, seqs=seqs, booked=self._index.booked,
            sizes={seq: size for seq, size in self._index.sizes.items() if seq in there},
            unpaid=[seq for seq in self._index.unpaid if seq in there],
            late={name: usage for name, usage in self._index.late.items() if name in names},
            cursor=self._index.seqs.get(cursor, 0) if isinstance(cursor, str) else cursor, latest=self._index.latest,
            turns=self._index.claims.recent(), turn=turn, alias=self._index.alias, moved=self._index.moved,
            marks={content: count for content, count in marks.items() if count}, has_own=self._index.has_own,
        )  # fmt: skip


def _more(usage: Usage, booked: Usage) -> dict[str, int]:
    return {name: max(0, getattr(usage, name) - getattr(booked, name)) for name in _COUNTS}


def _is_empty(entry: AnyEntry) -> bool:
    return isinstance(entry, Message) and entry.role == "user" and not entry.blocks


def next_place(placed: list[tuple[str, int]], record: Record, cursor: int) -> int:
    """The node that a record is which came from here: the next that says the same. Those before it are passed."""
    wanted = gist(record.entry)
    for index in range(len(placed) - 1, -1, -1):
        digest, seq = placed[index]
        if wanted and digest == wanted:
            del placed[index:]
            return seq
    return cursor
