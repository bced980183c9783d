"""What is new in a session of another agent, appended to the session it is here.

A source whose records have keys of their own is read against the keys that are here. In any other, content tells
records apart: where the source kept its beginning and went on, only the rest is new; where it threw its beginning away
for a summary, that is a compaction here; anything else it changed is a branch. Nothing that is here is taken away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.exchange import HEADER
from turnlog.exchange.arrival import LATE, Arrival, origin_of
from turnlog.formats import Jump, Problem, Record, Step, content_key, gist, overlap
from turnlog.log.entry import WIDE_FACTS, AnyEntry, Compaction, Edit, Entry, Message, Note, Set, Spent
from turnlog.log.secret import mask
from turnlog.log.usage import Usage

_COUNTS = Usage.__struct_fields__[:-1]
_TITLE = "source_title"
"""The fact that says which title came from the source: another one was given here, and stays."""


class Importer(Arrival):
    """Takes one reading into one session."""

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

    def _by_key(self, steps: Iterator[Step]) -> None:
        if not self._number:
            self._cursor = 0
        self._is_keyed = True
        carried = self._placed() if self._alias is not None else []
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
            if self._alias is not None and self._number <= self._alias.records:
                self._seqs[name] = self._cursor = next_place(carried, step, self._cursor)
                continue
            if _is_empty(step.entry):
                empty = step, name  # as the last one, it is still being written: the next time it says something
            else:
                self._take(step, name)
        self._flush()
        if self._session.head not in (self._cursor, self._own_head) and not self._stays():
            self._jump(self._cursor, why="branch")  # what was new is not where the source ends

    def _take(self, step: Record, name: str) -> None:
        """One record; of a turn that hooks told of, the ends are there already."""
        told_turn = self._claims.told_turn(step.entry)
        if told_turn is not None:
            self._seqs[name] = told_turn.seq
            return
        seq = self._seqs.get(name)
        turn = self._claims.turn_of(step, name, is_known=seq is not None)
        if seq is None:
            self._add(self._named(step, name, turn))
        elif step.entry.is_node:
            self._flush()
            self._cursor = self._grown(step.entry, name, seq)

    def _placed(self) -> list[tuple[str, int]]:
        """What was said when the session went on under this source's id, the newest first, and where it is."""
        assert self._alias is not None
        return [(gist(self._history.whole(node)), node.seq) for node in self._history.path(self._alias.head)]

    def _stays(self) -> bool:
        """Whether the conversation stays where it was moved to here: no turn began since, so nothing went on there."""
        return self._moved > 0 and all(turn.seq < self._moved for turn in self._claims.told.values())

    def _grown(self, entry: AnyEntry, name: str, seq: int) -> int:
        """Which node to go on from. An answer that was still being written when it was last read gets the rest."""
        if not isinstance(entry, Message) or len(entry.blocks) <= self._sizes.get(seq, len(entry.blocks)):
            if isinstance(entry, Message) and seq in self._unpaid and name not in self._late:
                self._pay(entry, name, Usage())
            return seq
        grown = f"{name}~{len(entry.blocks)}"
        known_seq = self._seqs.get(grown)
        if known_seq is not None:
            return known_seq
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
            self._add(Spent(usage=Usage(**more), model=entry.model, why=LATE, request=name, origin=self._origin))

    def _move(self, move: Jump) -> None:
        self._flush()
        to = self._key(move.to)
        seq = (self._seqs.get(to) or self._found(to) or None) if move.to else 0
        if seq is None:
            self.problems.append(Problem(f"goes on after record {move.to!r:.80}, which is not there"))
            return
        self._cursor = seq
        name = "" if move.key is None else self._key(move.key)
        if name and name not in self._seqs and not self._stays() and not (self._is_grown and self._found(name)):
            self._jump(seq, name=name, why=move.why, at=move.at, origin=move.origin)
            self.added += 1

    def _by_content(self, records: list[Record]) -> None:
        digests = [content_key(record.entry) for record in records]
        nodes = [index for index, record in enumerate(records) if record.entry.is_node]
        now = [digests[index] for index in nodes]
        before = self._last_reading()
        same = 0
        while same < len(before) and same < len(now) and before[same][0] == now[same]:
            same += 1
        shift, length = 0, same
        self._cursor = before[same - 1][1] if same else 0
        if same < len(before):
            shared, reach = overlap([digest for digest, _ in before], now)
            if reach > same:
                shift, length = shared, reach
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
        self._add(replace(compaction, origin=compaction.origin or self._origin, at=compaction.at or self._latest))
        self._flush()

    def _settle(self) -> None:
        marks: list[Entry] = []
        title = self._reading.header.title
        facts = {**self._reading.facts, **({_TITLE: title} if title else {}), **self._header()}
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
        if self._stays() and self._session.head != self._own_head:
            self._jump(self._own_head, why="branch")
        elif self._is_both and all(node.seq != self._own_head for node in self._history.path(self._session.head)):
            self._jump(self._own_head, why="branch")
            self.problems.append(Problem("it went on both here and there: what is new there is a branch here"))
        problems = [problem for problem in self._reading.problems if not problem.is_news]
        if self.added and problems:
            text = f"{self._source.path} was read with {len(problems)} problem{'s' * (len(problems) != 1)}"
            self._append([Note(text=text, data=msgspec.to_builtins(problems[:100]), at=self._latest)])

    def _header(self) -> dict[str, Any]:
        """What the source says of itself, where the session was made before anybody could read that."""
        origin, header = origin_of(self._history) if self._history.state.is_relayed else {}, self._reading.header
        created = None if header.created is None else header.created.isoformat()
        if origin.get("id") != header.id or "header" in origin or not (header.origin or created):
            return {}
        return {HEADER: {"origin": header.origin, "created": created}}

    def _difference(self, model: str, total: Usage) -> Usage | None:
        """What was spent since the last time, of a running total."""
        booked = self._booked.get(model, Usage())
        if len(self._reading.totals) == 1:  # of the whole session, under the model of the day
            booked = sum(self._booked.values(), Usage())
            own = self._session.usage().own
            if self._came_back and not any(_more(own, total).values()):  # with what was spent here
                booked = own
        more: dict[str, int] = {name: getattr(total, name) - getattr(booked, name) for name in _COUNTS}
        cost = None if total.cost_micros is None else total.cost_micros - (booked.cost_micros or 0)
        if min(*more.values(), cost or 0) < 0:
            self.problems.append(Problem("its totals are smaller than when it was last read: nothing is taken back"))
            more = {name: max(0, value) for name, value in more.items()}
            cost = None if cost is None else max(0, cost)
        return Usage(**more, cost_micros=cost or None) if any(more.values()) or cost else None


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
