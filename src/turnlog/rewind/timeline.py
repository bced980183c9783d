"""What the checkpoints of all sessions saw of a file, in order, and whose turns lay between them.

A change is only ever told by two checkpoints. Times put the checkpoints of several sessions in order; nothing is
anybody's because of when it happened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct, field

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Message, Root, Turn, Writer
from turnlog.log.ids import word_of
from turnlog.machine.process import this_process
from turnlog.rewind.intent import paths_of
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.rewind.span import Span, paths_in, spans
from turnlog.store import Store
from turnlog.thread.content import given_up
from turnlog.thread.history import History, opened
from turnlog.thread.report import Info, info_of
from turnlog.workspace.plan import is_same
from turnlog.workspace.tree import UNKNOWN, TreeNode, path_bytes


class Sighting(Struct, frozen=True, eq=False):
    """A checkpoint, and where the workspace of its session lies now."""

    checkpoint: Checkpoint
    place: bytes
    """With a slash behind it."""

    def roots(self, path: bytes) -> list[tuple[Root, bytes]]:
        """The folders of the checkpoint that a file is in, with its path in them, the nearest first."""
        found: list[tuple[Root, bytes]] = []
        for root in self.checkpoint.roots:
            place = self.place if root.name == WORKSPACE else path_bytes(root.path).rstrip(b"/") + b"/"
            inside = path[len(place) :] if path.startswith(place) else b""
            is_covered = not root.is_partial or inside in map(path_bytes, root.tracked)
            if inside and is_covered and not root.is_private:
                found.append((root, inside))
        return sorted(found, key=lambda pair: len(pair[1]))


Seen = Callable[[Sighting], TreeNode | None]
"""What a sighting has of a file; a node of kind `UNKNOWN` where it does not say."""


class TurnWork(Struct, eq=False):
    """A turn that was bracketed, and what its session says of it."""

    session: str
    parent: str | None
    """The session that started this one as a subagent."""
    turn: str
    number: int
    agent: str | None
    begin: Sighting
    end: Sighting | None
    """None while it goes on."""
    entry: int
    """Where it begins in the log."""
    within: str | None
    """The turn of a `turnlog run` that it is a part of."""
    prompt: Message | None = None
    model: str | None = None

    def sees(self, path: bytes, seen: Seen) -> bool:
        """Whether its folders cover a file, and not a repository of its own that the file is in."""
        ends = [one for one in (self.begin, self.end) if one is not None and one.roots(path)]
        return any((node := seen(one)) is None or node.kind != UNKNOWN for one in ends)


class Period(Struct, eq=False):
    """From one sighting to a later one, and what is known to have happened then."""

    first: int
    last: int
    work: TurnWork | None = None
    """Whose turn it was; None for a rewind."""
    paths: frozenset[bytes] | None = None
    """The only files it is about; None means all."""
    target: int = -1
    """Of a rewind: the sighting that files went back to."""
    session: str = ""
    """Of a rewind: whose it was."""
    is_doubtful: bool = False
    """Of a turn: whether it was cut short, and nobody can tell whether it still went on then."""


Step = tuple[int, int]
"""Two sightings between which a file changed."""


class Timeline(Struct):
    """Sightings in order, and what is known of the time between them."""

    sightings: list[Sighting]
    turns: list[Period]
    declared: list[Period]
    rewinds: list[Period]

    def owners(
        self, first: int, last: int, path: bytes, seen: Seen, *, doubtful: bool = False
    ) -> tuple[tuple[TurnWork, ...], bool]:
        """The turns in which a file may have been changed between two sightings, and whether it surely was in one.

        Where turns overlap, the change is that one's which declared it. `doubtful`: turns that were cut short count as
        far as they may have gone on.
        """
        found: dict[str, TurnWork] = {}
        is_sure = True
        for step in range(first, last):
            here = (one.work for one in self.turns if one.first <= step < one.last and one.is_doubtful <= doubtful)
            works = _deepest([work for work in here if work is not None and work.sees(path, seen)])
            if len(works) > 1 and (declarer := self.declarer(first, last, path, seen)) in works:
                works = [declarer]
            is_sure = is_sure and bool(works)
            found.update((work.turn, work) for work in works)
        return tuple(found.values()), is_sure

    def declarer(self, first: int, last: int, path: bytes, seen: Seen) -> TurnWork | None:
        """The turn that surely declared what happened to a file between two sightings.

        Each declaration is of one change between two checkpoints of its session. Which one that is can be told where
        no other change of the file lies there, or all others are known to be of other declarations.
        """
        told = [one for one in self.declared if _tells(one, path)]
        if not any(one.first <= first and last <= one.last for one in told):
            return None
        numbers = range(min(one.first for one in told), min(max(one.last for one in told) + 1, len(self.sightings)))
        steps = {*self.changes(numbers, seen), (first, last)}
        within = [({step for step in steps if one.first <= step[0] and step[1] <= one.last}, one.work) for one in told]
        return _declared(within).get((first, last))

    def changes(self, numbers: Iterable[int], seen: Seen) -> Iterator[Step]:
        """Between which of these sightings a file changed; those that do not say are passed over."""
        before: tuple[int, TreeNode | None] | None = None
        for number in numbers:
            node = seen(self.sightings[number])
            if node is not None and node.kind == UNKNOWN:
                continue
            if before is not None and not is_same(before[1], node):
                yield before[0], number
            before = number, node

    def rewind(self, first: int, last: int, path: bytes) -> Period | None:
        """The rewind in which a file was put back between two sightings."""
        within = (one for one in self.rewinds if one.first <= first and last <= one.last)
        return next((one for one in within if _has(one, path)), None)


def _declared(told: list[tuple[set[Step], TurnWork | None]]) -> dict[Step, TurnWork | None]:
    """Whose changes are, given which of them each declaration may mean; None for one that two may mean."""
    known: dict[Step, TurnWork | None] = {}
    left = told
    while True:
        found: dict[Step, TurnWork | None] = {}
        rest: list[tuple[set[Step], TurnWork | None]] = []
        for steps, work in left:
            if len(open_steps := steps - known.keys()) == 1:
                step = open_steps.pop()
                found[step] = work if found.get(step, work) is work else None
            else:
                rest.append((steps, work))
        known |= found
        left = rest
        if not found:
            break
    for steps, work in left:
        if steps <= known.keys():  # it was one of these, too
            known |= {step: None for step in steps if known[step] is not work}
    return known


def _has(period: Period, path: bytes) -> bool:
    return period.paths is None or path in period.paths


def _tells(period: Period, path: bytes) -> bool:
    """Whether that is declared: with a file, the folders that it is in."""
    return _has(period, path) or any(one.startswith(path + b"/") for one in period.paths or ())


def _deepest(works: list[TurnWork]) -> list[TurnWork]:
    """Without those whose subagents are among them, or agents that they ran: what those do is in their turns, too."""
    above = {work.parent for work in works} | {work.within for work in works}
    return [work for work in works if work.session not in above and work.turn not in above]


class _Told(Struct):
    """What one log says, by the way."""

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
        if entry.role == "user" and entry.display is not False:
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
    return _timeline([_told(store, row, place_of(row.workspace or "/")) for row in rows])


def _rows(store: Store) -> list[Info]:
    return sorted(map(info_of, store.listing()), key=lambda row: (row.created_at is not None, row.created_at, row.id))


def _timeline(found: list[_Told]) -> Timeline:
    here = _this_machine(found)
    sightings: list[tuple[Sighting, _Told]] = []
    seen: set[str] = set()
    for told in found:
        for checkpoint in told.checkpoints:
            writer = told.writers.get(word_of(checkpoint.id))
            is_here = writer is None or writer.host in here or writer.boot in here
            if checkpoint.id not in seen and checkpoint.id not in told.dropped and is_here:
                seen.add(checkpoint.id)
                sightings.append((Sighting(checkpoint, told.place), told))
    sightings.sort(key=lambda pair: pair[0].checkpoint.at.timestamp() if pair[0].checkpoint.at else 0.0)
    index = {sighting.checkpoint.id: number for number, (sighting, _) in enumerate(sightings)}
    made = Timeline([sighting for sighting, _ in sightings], [], [], [])
    known: dict[str, TurnWork] = {}
    for told in found:
        _add_turns(made, told, index, known)
        _add_rewinds(made, told, index)
    return made


def _around(store: Store, rows: list[Info], path: bytes) -> list[_Told]:
    """What sessions say whose folder the file is in, or lies in the folder."""
    places = {row.workspace: place_of(row.workspace) for row in rows if row.workspace}
    is_folder = path.endswith(b"/")
    near = {name for name, place in places.items() if path.startswith(place) or (is_folder and place.startswith(path))}
    inside = [row for row in rows if row.workspace in near]
    return [_told(store, row, places[row.workspace or ""]) for row in inside]


def _tracking(store: Store, rows: list[Info], path: bytes) -> list[_Told]:
    """What sessions say that track that very file, wherever it is."""
    found: list[_Told] = []
    for row in rows:
        with opened(store, store.open(row.id, read_only=True)) as history:
            folders = tuple(path_bytes(folder) + b"/" for folder in history.state.folders)
            if path in map(path_bytes, history.state.tracked) or path.startswith(folders):
                found.append(_heard(store, history, _Told(row, place_of(row.workspace or "/"))))
    return found


def _told(store: Store, row: Info, place: bytes) -> _Told:
    with opened(store, store.open(row.id, read_only=True)) as history:
        return _heard(store, history, _Told(row, place))


def _heard(store: Store, history: History, told: _Told) -> _Told:
    told.spans = spans(store, history, told.hear(history.forward()))
    told.dropped = given_up(store, told.checkpoints, history.state.dropped)
    for head in told.heads:
        intent = told.intents.get(head.intent)
        if intent is not None:
            try:
                told.intents[intent.seq] = history.whole(intent)
            except (Corrupt, NotFound):
                del told.intents[intent.seq]  # then all that changed counts
    return told


def _this_machine(found: list[_Told]) -> set[str]:
    """What this machine is and was called: its names, and its starts, each known by another one."""
    me = this_process()
    here = {str(me[key]) for key in ("host", "boot") if me[key]}
    writers = [writer for told in found for writer in told.writers.values()]
    while more := {
        name
        for writer in writers
        if writer.host in here or writer.boot in here
        for name in (writer.host, writer.boot)
        if name and name not in here
    }:
        here |= more
    return here


def _add_turns(made: Timeline, told: _Told, index: dict[str, int], known: dict[str, TurnWork]) -> None:
    mine: dict[str, TurnWork] = {}
    for span in told.spans:
        if span.turn is None or span.turn in known or span.begin.id not in index:
            continue  # a fork has its parent's turns, and did not make them
        work = mine.setdefault(span.turn, _work(told, span, span.turn))
        last = len(made.sightings) if span.end is None else index.get(span.end.id, -1)
        made.turns.append(Period(index[span.begin.id], last, work, is_doubtful=bool(span.doubt)))
    known.update(mine)
    for changed, count in told.changed:
        work = mine.get(changed.turn or "")
        if work is None or not count:
            continue
        before, after = told.checkpoints[count - 1], told.checkpoints[count : count + 1]
        last = index.get(after[0].id, -1) if after else len(made.sightings)
        paths = _absolute(told.place, before, changed.paths)
        made.declared.append(Period(index.get(before.id, len(made.sightings)), last, work, paths))


def _work(told: _Told, span: Span, turn: str) -> TurnWork:
    begins, within = told.begins.get(turn, (span.began, None))
    prompt, model = told.prompts.get(turn), told.models.get(turn)
    row, begin = told.row, Sighting(span.begin, told.place)
    end = None if span.end is None else Sighting(span.end, told.place)
    return TurnWork(row.id, row.parent, turn, span.number, row.agent, begin, end, begins, within, prompt, model)


def _add_rewinds(made: Timeline, told: _Told, index: dict[str, int]) -> None:
    numbers = {checkpoint.seq: index[checkpoint.id] for checkpoint in told.checkpoints if checkpoint.id in index}
    heads = {head.seq: head for head in told.heads}
    for head in told.heads:
        if head.before not in numbers or head.after not in numbers:
            continue
        intent = told.intents.get(head.intent)
        before = made.sightings[numbers[head.before]]
        paths = None if intent is None else _absolute(told.place, before.checkpoint, paths_of(intent, head))
        first, last = numbers[head.before], numbers[head.after]
        made.rewinds.append(Period(first, last, None, paths, _target(head, heads, numbers), told.row.id))


def _target(head: Head, heads: dict[int, Head], numbers: dict[int, int]) -> int:
    """The sighting that files went back to; before all where nobody can tell."""
    undone = heads.get(head.undoes)
    if head.why == "undo" and undone is not None:
        return numbers.get(undone.before, -1)
    if head.why == "redo" and undone is not None:
        return numbers.get(undone.after, -1)
    return max((number for seq, number in numbers.items() if seq <= head.asof and seq < head.before), default=-1)


def _absolute(place: bytes, checkpoint: Checkpoint, paths: Iterable[str]) -> frozenset[bytes]:
    """Paths as a log has them, from the root."""
    found: set[bytes] = set()
    for root in checkpoint.roots:
        if root.name == WORKSPACE and not root.is_private:
            found |= {os.path.join(place, path) for path in paths_in(root, paths)}
    return frozenset(found | {path_bytes(path) for path in paths})


def place_of(folder: str) -> bytes:
    """A folder as it is now, whatever links lead to it, with a slash behind it."""
    return os.path.join(os.path.realpath(path_bytes(folder)), b"")
