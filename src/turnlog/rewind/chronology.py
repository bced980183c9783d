"""The timeline of a file or of sessions, as the logs of all sessions of this machine tell it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from msgspec import Struct, field

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Message, Turn, Writer
from turnlog.log.ids import word_of
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.machine.process import this_process
from turnlog.rewind.intent import paths_of
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.rewind.timeline import Period, Sighting, Timeline, TurnWork
from turnlog.store import Store
from turnlog.thread.content import given_up
from turnlog.thread.history import History, opened
from turnlog.thread.report import Info, info_of
from turnlog.workspace.tree import path_bytes


class _Witness(Struct):
    """Facts collected from one log while its spans are computed."""

    row: Info
    place: bytes
    checkpoints: list[Checkpoint] = field(default_factory=list[Checkpoint])
    heads: list[Head] = field(default_factory=list[Head])
    intents: dict[int, Intent] = field(default_factory=dict[int, Intent])
    changed: list[tuple[Changed, int]] = field(default_factory=list[tuple[Changed, int]])
    """With the number of checkpoints before it."""
    writers: dict[str, Writer] = field(default_factory=dict[str, Writer])
    begins: dict[str, tuple[int, str | None]] = field(default_factory=dict[str, tuple[int, str | None]])
    prompts: dict[str, Message] = field(default_factory=dict[str, Message])
    models: dict[str, str] = field(default_factory=dict[str, str])
    spans: list[Span] = field(default_factory=list[Span])
    dropped: frozenset[str] = frozenset()

    def hear(self, entries: Iterable[AnyEntry]) -> Iterator[AnyEntry]:
        """The same entries, with what matters of them kept."""
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


def timeline(store: Store, path: bytes) -> Timeline:
    """Everything that sessions of this machine know of a file, or with a slash behind it of all files of a folder.

    The path is from the root, with no link in it.
    """
    rows = _rows(store)
    return _timeline(_around(store, rows, path) or _tracking(store, rows, path))


def timeline_of(store: Store, sessions: Collection[str]) -> Timeline:
    """What these sessions know of all their files."""
    rows = [row for row in _rows(store) if row.id in sessions]
    return _timeline([_witness(store, row, folder_path(row.workspace or "/")) for row in rows])


def _rows(store: Store) -> list[Info]:
    return sorted(map(info_of, store.listing()), key=lambda row: (row.created_at is not None, row.created_at, row.id))


def _timeline(witnesses: list[_Witness]) -> Timeline:
    here = _this_machine(witnesses)
    sightings: list[tuple[Sighting, _Witness]] = []
    seen: set[str] = set()
    for witness in witnesses:
        for checkpoint in witness.checkpoints:
            writer = witness.writers.get(word_of(checkpoint.id))
            is_here = writer is None or writer.host in here or writer.boot in here
            if checkpoint.id not in seen and checkpoint.id not in witness.dropped and is_here:
                seen.add(checkpoint.id)
                sightings.append((Sighting(checkpoint, witness.place), witness))
    sightings.sort(key=_moment)
    index = {sighting.checkpoint.id: number for number, (sighting, _) in enumerate(sightings)}
    timeline = Timeline([sighting for sighting, _ in sightings], [], [], [])
    works: dict[str, TurnWork] = {}
    at_once = _at_once(sightings)
    for witness in witnesses:
        _add_turns(timeline, witness, index, works, at_once)
        _add_rewinds(timeline, witness, index)
    return timeline


def _moment(pair: tuple[Sighting, _Witness]) -> float:
    at = pair[0].checkpoint.at
    return at.timestamp() if at else 0.0


def _at_once(sightings: list[tuple[Sighting, _Witness]]) -> dict[int, range]:
    """Sightings of several sessions in one millisecond, which have no order: what was begun or ended by one of them
    may have been so by any."""
    ranges: dict[int, range] = {}
    for _, group in groupby(enumerate(sightings), lambda pair: _moment(pair[1])):
        numbers, pairs = zip(*group, strict=True)
        if len({id(witness) for _, witness in pairs}) > 1:
            ranges |= dict.fromkeys(numbers, range(numbers[0], numbers[-1] + 1))
    return ranges


def _around(store: Store, rows: list[Info], path: bytes) -> list[_Witness]:
    """What sessions say whose folder the file is in, or lies in the folder."""
    places = {row.workspace: folder_path(row.workspace) for row in rows if row.workspace}
    is_folder = path.endswith(b"/")
    near = {
        name for name, folder in places.items() if path.startswith(folder) or (is_folder and folder.startswith(path))
    }
    inside = [row for row in rows if row.workspace in near]
    return [_witness(store, row, places[row.workspace or ""]) for row in inside]


def _tracking(store: Store, rows: list[Info], path: bytes) -> list[_Witness]:
    """What sessions say that track that very file, wherever it is."""
    witnesses: list[_Witness] = []
    for row in rows:
        with opened(store, store.open(row.id, read_only=True)) as history:
            folders = tuple(path_bytes(folder) + b"/" for folder in history.state.folders)
            if path in map(path_bytes, history.state.tracked) or path.startswith(folders):
                witnesses.append(_heard(store, history, _Witness(row, folder_path(row.workspace or "/"))))
    return witnesses


def _witness(store: Store, row: Info, folder: bytes) -> _Witness:
    with opened(store, store.open(row.id, read_only=True)) as history:
        return _heard(store, history, _Witness(row, folder))


def _heard(store: Store, history: History, witness: _Witness) -> _Witness:
    witness.spans = spans(store, history, witness.hear(history.forward()))
    witness.dropped = given_up(store, witness.checkpoints, history.state.dropped)
    for head in witness.heads:
        intent = witness.intents.get(head.intent)
        if intent is not None:
            try:
                witness.intents[intent.seq] = history.whole(intent)
            except (Corrupt, NotFound):
                del witness.intents[intent.seq]  # then all that changed counts
    return witness


def _this_machine(witnesses: list[_Witness]) -> set[str]:
    """What this machine is and was called: its names, and its starts, each known by another one."""
    me = this_process()
    here = {str(me[key]) for key in ("host", "boot") if me[key]}
    writers = [writer for witness in witnesses for writer in witness.writers.values()]
    while more := {
        name
        for writer in writers
        if writer.host in here or writer.boot in here
        for name in (writer.host, writer.boot)
        if name and name not in here
    }:
        here |= more
    return here


def _add_turns(
    timeline: Timeline, witness: _Witness, index: dict[str, int], works: dict[str, TurnWork], at_once: dict[int, range]
) -> None:
    mine: dict[str, TurnWork] = {}
    for span in witness.spans:
        if span.turn is None or span.turn in works or span.begin.id not in index:
            continue  # a fork has its parent's turns, and did not make them
        work = mine.setdefault(span.turn, _work(witness, span, span.turn))
        last = len(timeline.sightings) if span.end is None else index.get(span.end.id, -1)
        timeline.turns.append(Period(*_widest(index[span.begin.id], last, at_once), work, is_doubtful=bool(span.doubt)))
    works.update(mine)
    for changed, count in witness.changed:
        work = mine.get(changed.turn or "")
        if work is None or not count:
            continue
        before, after = witness.checkpoints[count - 1], witness.checkpoints[count : count + 1]
        first = index.get(before.id, len(timeline.sightings))
        last = index.get(after[0].id, -1) if after else len(timeline.sightings)
        paths = _absolute(witness.place, before, changed.paths)
        timeline.declared.append(Period(*_widest(first, last, at_once), work, paths))


def _widest(first: int, last: int, at_once: dict[int, range]) -> tuple[int, int]:
    return at_once.get(first, (first,))[0], at_once.get(last, (last,))[-1]


def _work(witness: _Witness, span: Span, turn: str) -> TurnWork:
    begins, within = witness.begins.get(turn, (span.began, None))
    prompt, model = witness.prompts.get(turn), witness.models.get(turn)
    row, begin = witness.row, Sighting(span.begin, witness.place)
    end = None if span.end is None else Sighting(span.end, witness.place)
    return TurnWork(row.id, row.parent, turn, span.number, row.agent, begin, end, begins, within, prompt, model)


def _add_rewinds(timeline: Timeline, witness: _Witness, index: dict[str, int]) -> None:
    numbers = {checkpoint.seq: index[checkpoint.id] for checkpoint in witness.checkpoints if checkpoint.id in index}
    heads = {head.seq: head for head in witness.heads}
    for head in witness.heads:
        if head.before not in numbers or head.after not in numbers:
            continue
        intent = witness.intents.get(head.intent)
        before = timeline.sightings[numbers[head.before]]
        paths = None if intent is None else _absolute(witness.place, before.checkpoint, paths_of(intent, head))
        first, last = numbers[head.before], numbers[head.after]
        timeline.rewinds.append(Period(first, last, None, paths, _target(head, heads, numbers), witness.row.id))


def _target(head: Head, heads: dict[int, Head], numbers: dict[int, int]) -> int:
    """The sighting that files went back to; before all where nobody can tell."""
    undone = heads.get(head.undoes)
    if head.why == "undo" and undone is not None:
        return numbers.get(undone.before, -1)
    if head.why == "redo" and undone is not None:
        return numbers.get(undone.after, -1)
    return max((number for seq, number in numbers.items() if seq <= head.asof and seq < head.before), default=-1)


def _absolute(folder: bytes, checkpoint: Checkpoint, paths: Iterable[str]) -> frozenset[bytes]:
    """Paths as a log has them, from the root."""
    absolute: set[bytes] = set()
    for root in checkpoint.roots:
        if root.name == WORKSPACE and not root.is_private:
            absolute |= {os.path.join(folder, path) for path in paths_in(root, paths)}
    return frozenset(absolute | {path_bytes(path) for path in paths})


def folder_path(folder: str) -> bytes:
    """A folder as it is now, whatever links lead to it, with a slash behind it: a prefix is then a folder above."""
    return os.path.join(os.path.realpath(path_bytes(folder)), b"")
