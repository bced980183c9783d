"""The timeline of a file or of sessions, from the logs of all sessions of this machine."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import groupby
from math import inf
from typing import NamedTuple

from msgspec import Struct, field

from turnlog.errors import Corrupt, NotFound, Unsupported
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Message, Track, Turn, Writer
from turnlog.log.fold import MOST_FOLDERS
from turnlog.log.ids import word_of
from turnlog.log.path import is_at_or_below
from turnlog.log.prompt.promptmessage import is_prompt
from turnlog.machine.process import this_process
from turnlog.rewind.intent import paths_of
from turnlog.rewind.snapshot import WORKSPACE, folder_path
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.timeline import (
    NOT_RECORDED,
    DeclaredPeriod,
    RewindPeriod,
    Seen,
    Sighting,
    Timeline,
    TurnPeriod,
    TurnWork,
)
from turnlog.store import Store
from turnlog.thread.history import History, loaded
from turnlog.thread.report import Info, info_of
from turnlog.thread.space.checkpointcontent import given_up
from turnlog.workspace.tree import FILE, TreeNode, is_unknown, path_bytes


class _Declaration(NamedTuple):
    """A declaration, and the number of checkpoints before it."""

    changed: Changed
    checkpoints: int


class _LogFacts(Struct):
    """Facts collected from one log while its spans are computed."""

    row: Info
    workspace: bytes
    checkpoints: list[Checkpoint] = field(default_factory=list[Checkpoint])
    heads: list[Head] = field(default_factory=list[Head])
    intents: dict[int, Intent] = field(default_factory=dict[int, Intent])
    declarations: list[_Declaration] = field(default_factory=list[_Declaration])
    writers: dict[str, Writer] = field(default_factory=dict[str, Writer])
    begins: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """By turn, the entry at its beginning."""
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
                    self.begins[entry.turn] = entry
            elif isinstance(entry, Changed):
                self.declarations.append(_Declaration(entry, len(self.checkpoints)))
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


class _LogSighting(NamedTuple):
    """A sighting, and the log that it is in."""

    sighting: Sighting
    facts: _LogFacts

    @property
    def moment(self) -> float:
        """The time of the checkpoint in seconds; 0 if it has none."""
        at = self.sighting.checkpoint.at
        return at.timestamp() if at else 0.0


def timeline_at(store: Store, path: bytes, seen: Seen | None = None, digest: str | None = None) -> Timeline:
    """The timeline of a file, or of all files of a folder if the path ends with a slash.

    The path is absolute and has no link in it. `seen` returns a sighting's node of the file, and `digest` is the
    content that it has now, if known. There may be thousands of sessions elsewhere: of those, only the ones that were
    written to while the file changed are asked whether they track it.
    """
    rows = _rows(store)
    near = _around(store, rows, path)
    periods = _periods_of_change(near, seen or partial(_trees_around, path), digest)
    names = {facts.row.id for facts in near}
    elsewhere = [row for row in rows if row.id not in names and _is_active_in(periods, row)]
    order = {row.id: number for number, row in enumerate(rows)}  # what a fork inherits counts for the older session
    return _timeline(sorted([*near, *_tracking(store, elsewhere, path)], key=lambda facts: order[facts.row.id]))


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


def _in_order(logs: list[_LogFacts]) -> list[_LogSighting]:
    """The checkpoints that were taken on this machine and not given up, each once, in the order of their times."""
    here = _this_machine(logs)
    sightings: list[_LogSighting] = []
    seen: set[str] = set()
    for facts in logs:
        for checkpoint in facts.checkpoints:
            writer = facts.writers.get(word_of(checkpoint.id))
            is_here = writer is None or writer.host in here or writer.boot in here
            if checkpoint.id not in seen and checkpoint.id not in facts.dropped and is_here:
                seen.add(checkpoint.id)
                sightings.append(_LogSighting(Sighting(checkpoint, facts.workspace), facts))
    return sorted(sightings, key=lambda sighting: sighting.moment)


def _at_once(sightings: list[_LogSighting]) -> dict[int, range]:
    """Sightings of several sessions in one millisecond, which have no order.

    A period that begins or ends at one of them may begin or end at any of them.
    """
    ranges: dict[int, range] = {}
    first = 0
    for _, group in groupby(sightings, lambda sighting: sighting.moment):
        together = list(group)
        numbers = range(first, first + len(together))
        first = numbers.stop
        if len({id(sighting.facts) for sighting in together}) > 1:
            ranges |= dict.fromkeys(numbers, numbers)
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
    """The logs of sessions that track the file, or anything in the given folder, wherever it is."""
    logs: list[_LogFacts] = []
    is_folder = path.endswith(b"/")
    for row, history in each_opened(store, rows, lambda row: True):
        tracked = set(map(path_bytes, tracked_paths(history)))
        is_around = is_at_or_below(path.rstrip(b"/"), tracked)
        if is_around or (is_folder and any(inside.startswith(path) for inside in tracked)):
            logs.append(_read_facts(store, row, history))
    return logs


class _Period(NamedTuple):
    """A time between two moments, in seconds."""

    begin: float
    end: float


def _periods_of_change(near: list[_LogFacts], seen: Seen, digest: str | None) -> list[_Period]:
    """The times between two sightings of these sessions in which a file changed, in order.

    The time before the first one is not among them, but all time is if no sighting knows of the file.
    """
    sightings = _in_order(near)
    timeline = Timeline([sighting for sighting, _ in sightings], [], [], [])
    nodes = {number: seen(sighting) for number, (sighting, _) in enumerate(sightings)}
    known = [number for number, node in nodes.items() if not is_unknown(node)]
    if not known:
        return [_Period(-inf, inf)]
    changes = timeline.changes(known, seen)
    periods = [_Period(sightings[first].moment, sightings[last].moment) for first, last in changes]
    newest = nodes[known[-1]]
    is_current = newest is not None and newest.digest == digest
    return periods if is_current else [*periods, _Period(sightings[known[-1]].moment, inf)]


def _trees_around(path: bytes, sighting: Sighting) -> TreeNode | None:
    """A node for the content of all folders inside a folder or around it: equal ones mean that nothing changed."""
    roots = [root for root in sighting.checkpoint.roots if not root.is_private]
    tops = [(sighting.workspace if root.name == WORKSPACE else folder_path(root.path), root.tree) for root in roots]
    inside = sorted(item for item in tops if item[0].startswith(path) or path.startswith(item[0]))
    return TreeNode(FILE, digest=repr(inside)) if inside else NOT_RECORDED


def _is_active_in(periods: list[_Period], row: Info) -> bool:
    """Whether a session may have been written to in one of these times. A fork may hold what is older than itself."""
    begin = -inf if row.created_at is None or row.fork is not None else row.created_at.timestamp()
    end = inf if row.updated_at is None else row.updated_at.timestamp()
    first = bisect_left(periods, begin, key=lambda period: period.end)
    return first < len(periods) and periods[first].begin <= end


def _facts_of(store: Store, rows: list[Info]) -> list[_LogFacts]:
    return [_read_facts(store, row, history) for row, history in each_opened(store, rows, lambda row: False)]


def each_opened(
    store: Store, rows: Iterable[Info], is_elsewhere: Callable[[Info], bool]
) -> Iterator[tuple[Info, History]]:
    """The sessions of a listing with their histories, each closed after its turn. One purged since is left out.

    So is one that cannot be read, if it works elsewhere: it would hardly ever matter, and nobody could go on.
    """
    for row in rows:
        try:
            log = store.open(row.id, read_only=True)
        except NotFound:
            continue
        try:
            history = loaded(store, log)
        except (NotFound, Corrupt, Unsupported):
            if is_elsewhere(row):
                continue
            raise
        with closing(history):
            yield row, history


def tracked_paths(history: History) -> Iterator[str]:
    """The files and folders that a session tracks, and the folders that it tracked earlier."""
    state = history.state
    yield from (*state.tracked, *state.folders)
    if len(state.folders) == MOST_FOLDERS:  # earlier ones may have been forgotten
        yield from (entry.path for entry in history.forward() if isinstance(entry, Track) and entry.is_folder)


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

    def __init__(self, sightings: list[_LogSighting]) -> None:
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
            work.last = Sighting(span.end or facts.checkpoints[-1], facts.workspace)
            last = self._end if span.end is None else self._index.get(span.end.id, -1)
            first, last = self._widest(self._index[span.begin.id], last)
            self.timeline.turns.append(TurnPeriod(first, last, work, is_doubtful=bool(span.doubt)))
        self._works.update(own)
        self._add_declared(facts, own)

    def _add_declared(self, facts: _LogFacts, own: dict[str, TurnWork]) -> None:
        for changed, number in facts.declarations:
            work = own.get(changed.turn or "")
            if work is None or not number:
                continue
            before = facts.checkpoints[number - 1]
            after = facts.checkpoints[number] if number < len(facts.checkpoints) else None
            first = self._index.get(before.id, self._end)
            last = self._end if after is None else self._index.get(after.id, -1)
            paths = _absolute_paths(facts.workspace, before, changed.paths)
            self.timeline.declared.append(DeclaredPeriod(*self._widest(first, last), work, paths))

    def add_rewinds(self, facts: _LogFacts) -> None:
        """Add the rewinds of a session."""
        numbers = {point.seq: self._index[point.id] for point in facts.checkpoints if point.id in self._index}
        heads = {head.seq: head for head in facts.heads}
        for head in facts.heads:
            if head.before not in numbers or head.after not in numbers:
                continue
            first, last = numbers[head.before], numbers[head.after]
            intent, before = facts.intents.get(head.intent), self.timeline.sightings[first]
            paths = (
                None if intent is None else _absolute_paths(facts.workspace, before.checkpoint, paths_of(intent, head))
            )
            target = _target(head, heads, numbers)
            self.timeline.rewinds.append(RewindPeriod(first, last, paths, target, facts.row.id))

    @property
    def _end(self) -> int:
        """The number behind the last sighting."""
        return len(self.timeline.sightings)

    def _widest(self, first: int, last: int) -> tuple[int, int]:
        return self._at_once.get(first, (first,))[0], self._at_once.get(last, (last,))[-1]


def _work(facts: _LogFacts, span: Span, turn: str) -> TurnWork:
    began, begin = facts.begins.get(turn), Sighting(span.begin, facts.workspace)
    return TurnWork(
        session=facts.row.id,
        parent=facts.row.parent,
        turn=turn,
        number=span.number,
        agent=facts.row.agent,
        begin=begin,
        last=begin,
        entry=span.began if began is None else began.seq,
        within=None if began is None else began.within,
        prompt=facts.prompts.get(turn),
        model=facts.models.get(turn),
    )


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
