"""The timeline of a file or of sessions, from the logs of all sessions of this machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from msgspec import Struct, field

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Message, Turn, Writer
from turnlog.log.ids import word_of
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.machine.process import this_process
from turnlog.rewind.intent import paths_of
from turnlog.rewind.snapshot import WORKSPACE, folder_path
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.timeline import Period, Sighting, Timeline, TurnWork
from turnlog.store import Store
from turnlog.thread.history import History, opened
from turnlog.thread.report import Info, info_of
from turnlog.thread.space.checkpointcontent import given_up
from turnlog.workspace.tree import path_bytes


class _LogFacts(Struct):
    """Facts collected from one log while its spans are computed."""

    row: Info
    place: bytes
    checkpoints: list[Checkpoint] = field(default_factory=list[Checkpoint])
    heads: list[Head] = field(default_factory=list[Head])
    intents: dict[int, Intent] = field(default_factory=dict[int, Intent])
    changed: list[tuple[Changed, int]] = field(default_factory=list[tuple[Changed, int]])
    """Each with the number of checkpoints before it."""
    writers: dict[str, Writer] = field(default_factory=dict[str, Writer])
    begins: dict[str, tuple[int, str | None]] = field(default_factory=dict[str, tuple[int, str | None]])
    prompts: dict[str, Message] = field(default_factory=dict[str, Message])
    models: dict[str, str] = field(default_factory=dict[str, str])
    spans: list[Span] = field(default_factory=list[Span])
    dropped: frozenset[str] = frozenset()

    def collect(self, entries: Iterable[AnyEntry]) -> Iterator[AnyEntry]:
        """Pass the entries through, and keep what matters of them."""
        for entry in entries:
            if isinstance(entry, Message):
                self._message(entry)
            elif isinstance(entry, Checkpoint):
                self.checkpoints.append(entry)
            elif isinstance(entry, Turn):
                if entry.state == "begin" and entry.turn is not None:
                    self.begins[entry.turn] = entry.seq, entry.within
            elif isinstance(entry, Changed):
                self.changed.append((entry, len(self.checkpoints)))
            elif isinstance(entry, Head):
                self.heads.append(entry)
            elif isinstance(entry, Intent):
                self.intents[entry.seq] = entry
            elif isinstance(entry, Writer):
                self.writers[entry.word] = entry
            yield entry

    def _message(self, entry: Message) -> None:
        if entry.turn is None:
            return
        if is_prompt(entry):
            self.prompts.setdefault(entry.turn, entry)
        elif entry.role == "assistant" and entry.model:
            self.models[entry.turn] = entry.model


def timeline_at(store: Store, path: bytes) -> Timeline:
    """The timeline of a file, or of all files of a folder if the path ends with a slash.

    The path is absolute and has no link in it.
    """
    rows = _rows(store)
    return _timeline(_around(store, rows, path) or _tracking(store, rows, path))


def timeline_of(store: Store, sessions: Collection[str]) -> Timeline:
    """The timeline of all files of these sessions."""
    rows = [row for row in _rows(store) if row.id in sessions]
    return _timeline(_facts_of(store, rows))


def _rows(store: Store) -> list[Info]:
    return sorted(map(info_of, store.listing()), key=lambda row: (row.created_at is not None, row.created_at, row.id))


def _timeline(logs: list[_LogFacts]) -> Timeline:
    sightings = _in_order(logs)
    builder = _TimelineBuilder(sightings)
    for facts in logs:
        builder.add_turns(facts)
        builder.add_rewinds(facts)
    return builder.timeline


def _in_order(logs: list[_LogFacts]) -> list[tuple[Sighting, _LogFacts]]:
    """The checkpoints that were taken on this machine and not given up, each once, in the order of their times."""
    here = _this_machine(logs)
    sightings: list[tuple[Sighting, _LogFacts]] = []
    seen: set[str] = set()
    for facts in logs:
        for checkpoint in facts.checkpoints:
            writer = facts.writers.get(word_of(checkpoint.id))
            is_here = writer is None or writer.host in here or writer.boot in here
            if checkpoint.id not in seen and checkpoint.id not in facts.dropped and is_here:
                seen.add(checkpoint.id)
                sightings.append((Sighting(checkpoint, facts.place), facts))
    return sorted(sightings, key=_moment)


def _moment(pair: tuple[Sighting, _LogFacts]) -> float:
    at = pair[0].checkpoint.at
    return at.timestamp() if at else 0.0


def _at_once(sightings: list[tuple[Sighting, _LogFacts]]) -> dict[int, range]:
    """Sightings of several sessions in one millisecond, which have no order.

    A period that begins or ends at one of them may begin or end at any of them.
    """
    ranges: dict[int, range] = {}
    for _, group in groupby(enumerate(sightings), lambda pair: _moment(pair[1])):
        numbers, pairs = zip(*group, strict=True)
        if len({id(facts) for _, facts in pairs}) > 1:
            ranges |= dict.fromkeys(numbers, range(numbers[0], numbers[-1] + 1))
    return ranges


def _around(store: Store, rows: list[Info], path: bytes) -> list[_LogFacts]:
    """The logs of sessions with the file in their folder, or with their folder in the given folder."""
    places = {row.workspace: folder_path(row.workspace) for row in rows if row.workspace}
    is_folder = path.endswith(b"/")
    near = {
        name for name, folder in places.items() if path.startswith(folder) or (is_folder and folder.startswith(path))
    }
    inside = [row for row in rows if row.workspace in near]
    return _facts_of(store, inside)


def _tracking(store: Store, rows: list[Info], path: bytes) -> list[_LogFacts]:
    """The logs of sessions that track the file, wherever it is."""
    logs: list[_LogFacts] = []
    for row, history in each_opened(store, rows):
        folders = tuple(path_bytes(folder) + b"/" for folder in history.state.folders)
        if path in map(path_bytes, history.state.tracked) or path.startswith(folders):
            logs.append(_read_facts(store, row, history))
    return logs


def _facts_of(store: Store, rows: list[Info]) -> list[_LogFacts]:
    return [_read_facts(store, row, history) for row, history in each_opened(store, rows)]


def each_opened(store: Store, rows: Iterable[Info]) -> Iterator[tuple[Info, History]]:
    """The sessions of a listing with their histories, each closed after its turn. One purged since is left out."""
    for row in rows:
        try:
            log = store.open(row.id, read_only=True)
        except NotFound:
            continue
        with opened(store, log) as history:
            yield row, history


def _read_facts(store: Store, row: Info, history: History) -> _LogFacts:
    facts = _LogFacts(row, folder_path(row.workspace or "/"))
    facts.spans = spans(store, history, facts.collect(history.forward()))
    facts.dropped = given_up(store, facts.checkpoints, history.state.dropped)
    for head in facts.heads:
        intent = facts.intents.get(head.intent)
        if intent is not None:
            try:
                facts.intents[intent.seq] = history.whole(intent)
            except (Corrupt, NotFound):
                del facts.intents[intent.seq]  # then all that changed counts
    return facts


def _this_machine(logs: list[_LogFacts]) -> set[str]:
    """The host names and boot ids of this machine, past and present, linked through writers with one of each."""
    me = this_process()
    here = {str(me[key]) for key in ("host", "boot") if me[key]}
    writers = [writer for facts in logs for writer in facts.writers.values()]
    while more := {
        name
        for writer in writers
        if writer.host in here or writer.boot in here
        for name in (writer.host, writer.boot)
        if name and name not in here
    }:
        here |= more
    return here


class _TimelineBuilder:
    """Adds what logs tell of the time between sightings to a timeline."""

    def __init__(self, sightings: list[tuple[Sighting, _LogFacts]]) -> None:
        self.timeline = Timeline([sighting for sighting, _ in sightings], [], [], [])
        self._index = {sighting.checkpoint.id: number for number, (sighting, _) in enumerate(sightings)}
        self._at_once = _at_once(sightings)
        self._works: dict[str, TurnWork] = {}

    def add_turns(self, facts: _LogFacts) -> None:
        """Add the turns of a session, and what it declared in them."""
        own: dict[str, TurnWork] = {}
        for span in facts.spans:
            if span.turn is None or span.turn in self._works or span.begin.id not in self._index:
                continue  # a fork inherits its parent's turns, but did not do their work
            work = own.setdefault(span.turn, _work(facts, span, span.turn))
            last = self._end if span.end is None else self._index.get(span.end.id, -1)
            first, last = self._widest(self._index[span.begin.id], last)
            self.timeline.turns.append(Period(first, last, work, is_doubtful=bool(span.doubt)))
        self._works.update(own)
        self._add_declared(facts, own)

    def _add_declared(self, facts: _LogFacts, own: dict[str, TurnWork]) -> None:
        for changed, count in facts.changed:
            work = own.get(changed.turn or "")
            if work is None or not count:
                continue
            before, after = facts.checkpoints[count - 1], facts.checkpoints[count : count + 1]
            first = self._index.get(before.id, self._end)
            last = self._index.get(after[0].id, -1) if after else self._end
            paths = _absolute_paths(facts.place, before, changed.paths)
            self.timeline.declared.append(Period(*self._widest(first, last), work, paths))

    def add_rewinds(self, facts: _LogFacts) -> None:
        """Add the rewinds of a session."""
        numbers = {point.seq: self._index[point.id] for point in facts.checkpoints if point.id in self._index}
        heads = {head.seq: head for head in facts.heads}
        for head in facts.heads:
            if head.before not in numbers or head.after not in numbers:
                continue
            first, last = numbers[head.before], numbers[head.after]
            intent, before = facts.intents.get(head.intent), self.timeline.sightings[first]
            paths = None if intent is None else _absolute_paths(facts.place, before.checkpoint, paths_of(intent, head))
            target = _target(head, heads, numbers)
            self.timeline.rewinds.append(Period(first, last, None, paths, target, facts.row.id))

    @property
    def _end(self) -> int:
        """The number behind the last sighting."""
        return len(self.timeline.sightings)

    def _widest(self, first: int, last: int) -> tuple[int, int]:
        return self._at_once.get(first, (first,))[0], self._at_once.get(last, (last,))[-1]


def _work(facts: _LogFacts, span: Span, turn: str) -> TurnWork:
    begins, within = facts.begins.get(turn, (span.began, None))
    prompt, model = facts.prompts.get(turn), facts.models.get(turn)
    row, begin = facts.row, Sighting(span.begin, facts.place)
    end = None if span.end is None else Sighting(span.end, facts.place)
    return TurnWork(row.id, row.parent, turn, span.number, row.agent, begin, end, begins, within, prompt, model)


def _target(head: Head, heads: dict[int, Head], numbers: dict[int, int]) -> int:
    """The number of the sighting that files went back to; -1, before all, if it is unknown."""
    undone = heads.get(head.undoes)
    if head.why == "undo" and undone is not None:
        return numbers.get(undone.before, -1)
    if head.why == "redo" and undone is not None:
        return numbers.get(undone.after, -1)
    return max((number for seq, number in numbers.items() if seq <= head.asof and seq < head.before), default=-1)


def _absolute_paths(folder: bytes, checkpoint: Checkpoint, paths: Iterable[str]) -> frozenset[bytes]:
    """The paths of a log as absolute paths."""
    absolute: set[bytes] = set()
    for root in checkpoint.roots:
        if root.name == WORKSPACE and not root.is_private:
            absolute |= {os.path.join(folder, path) for path in paths_in(root, paths)}
    return frozenset(absolute | {path_bytes(path) for path in paths})
