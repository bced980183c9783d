"""Spans: the stretches of the session's own work in its log. What changed inside them is the session's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from msgspec import Struct
from msgspec.structs import asdict, replace

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Note, Turn, Writer
from turnlog.log.ids import process_word, word_of
from turnlog.log.part import Root
from turnlog.machine.process import runs
from turnlog.rewind.intent import paths_of
from turnlog.rewind.nocheckpoint import reason_of
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.store import Store
from turnlog.thread.appender import turns_here
from turnlog.thread.history import History
from turnlog.thread.space.checkpointcontent import given_up
from turnlog.thread.turnnumber import number_turn
from turnlog.workspace.tree import path_bytes

_RELEVANT = (Checkpoint, Turn, Head, Intent, Changed, Writer)


class Span(Struct, frozen=True):
    """A stretch of the session's own work in the log: a turn, a rewind of files, or declared changes."""

    begin: Checkpoint
    end: Checkpoint | None
    """None if the span is not over."""
    what: str
    paths: frozenset[str] | None = None
    """The only paths it is about; None means all."""
    doubt: str = ""
    """Why others may have worked in it, too; empty if the work is certainly the session's."""
    is_theirs: bool = False
    """Whether the changes are certainly not the session's."""
    turn: str | None = None
    number: int = 0
    """The number of the turn."""
    began: int = 0
    """The `seq` of the turn's first checkpoint, wherever this part of the turn begins."""
    is_relayed: bool = False
    """Whether the turn was reported by an agent's hooks, which record where each tool ended."""
    is_blind: bool = False
    """Whether the turn has no checkpoint at its beginning: the span begins with an earlier one, or a void one."""

    @property
    def is_turn(self) -> bool:
        """Whether the span is a turn or a part of one, and not a rewind or a declaration."""
        return self.turn is not None


class _OpenTurn(Struct):
    """A turn whose end was not seen yet."""

    begin: Checkpoint
    last_sign: Checkpoint
    """The last checkpoint before an entry of the turn: the turn was still running then."""
    next_checkpoint: Checkpoint | None = None
    """The first checkpoint after `last_sign`."""
    is_abandoned: bool = False
    """Whether its process has begun another turn since."""
    is_relayed: bool = False
    is_blind: bool = False


class _Finder:
    """Collects the spans of a log, entry by entry."""

    def __init__(self, target: Checkpoint | None, inherited_to: int) -> None:
        self.spans: list[Span] = []
        self._target = target
        self._inherited_to = inherited_to
        self._begun: dict[str, _OpenTurn] = {}
        self._without_end: dict[str, _OpenTurn] = {}
        """Turns that ended without a checkpoint at their end."""
        self._numbers: dict[str, int] = {}
        self._writers: dict[str, Writer] = {}
        self._seen: dict[int, Checkpoint] = {}
        self._last: Checkpoint | None = None
        self._declared: set[str] = set()
        self._is_gap = False
        self._intents: dict[int, Intent] = {}

    def take(self, entry: AnyEntry) -> None:
        """Process the next entry."""
        if isinstance(entry, Checkpoint):
            self._checkpoint(entry)
        begun = self._begun.get(entry.turn) if entry.turn is not None else None
        if begun is not None and self._last is not None and _is_sign(entry, begun):
            begun.last_sign, begun.next_checkpoint = self._last, None
        if isinstance(entry, Note) and entry.turn is not None and begun is None:
            if reason_of(entry) is not None:
                last = self._last or Checkpoint(id="", seq=entry.seq, at=entry.at)
                self._begun[entry.turn] = _OpenTurn(last, last, is_blind=True)
        elif isinstance(entry, Turn) and entry.turn is not None:
            self._turn(entry, entry.turn)
        elif isinstance(entry, Head):
            self._head(entry)
        elif isinstance(entry, Changed) and entry.turn not in self._begun:
            self._declared.update(entry.paths)
        elif isinstance(entry, Writer):
            self._writers[entry.word] = entry

    def _checkpoint(self, entry: Checkpoint) -> None:
        self._close(entry)
        self._seen[entry.seq] = self._last = entry
        for begun in self._begun.values():
            begun.next_checkpoint = begun.next_checkpoint or entry
        for turn, begun in self._without_end.items():
            self._add_without_end(turn, begun, entry)
        self._without_end = {}
        if entry.turn is None:
            return
        if entry.when == "begin":
            self._begun[entry.turn] = _OpenTurn(entry, entry)
        elif entry.when == "end" and entry.turn in self._begun:
            begun = self._begun.pop(entry.turn)
            self._add_turn(entry.turn, begun, begun.begin, entry)

    def add_dropped(self, entry: Checkpoint) -> None:
        """Process a checkpoint that was given up."""
        self._is_gap = True
        if entry.turn is not None:
            self._begun.pop(entry.turn, None)

    def _turn(self, entry: Turn, turn: str) -> None:
        if entry.state != "begin":
            begun = self._begun.pop(turn, None)
            if begun is not None:
                self._without_end[turn] = begun
            return
        if turn in self._begun:
            self._begun[turn].is_relayed = entry.native is not None
        number_turn(self._numbers, entry)
        for other, begun in self._begun.items():
            begun.is_abandoned = begun.is_abandoned or (other != turn and word_of(other) == word_of(turn))

    def _head(self, entry: Head) -> None:
        if entry.before in self._seen and entry.after in self._seen:
            intent = self._intents.get(entry.intent)
            paths = None if intent is None else paths_of(intent, entry)
            what = f"{entry.why} {entry.seq}"
            self._add(Span(self._seen[entry.before], self._seen[entry.after], what, paths))

    def add_intent(self, entry: Intent) -> None:
        """Process an intent, which the head entry after it refers to."""
        self._intents = {entry.seq: entry}

    def finish(self) -> list[Span]:
        """The spans, after the last entry."""
        for turn, begun in self._begun.items():
            if begun.begin.seq <= self._inherited_to or not self._is_running(turn, begun):
                self._add_without_end(turn, begun, begun.next_checkpoint)
            elif begun.is_relayed:  # an interruption is not reported, so the turn may be over
                self._add_without_end(turn, begun, None, "is still open, and no tool of it has ended since")
            else:
                self._add_turn(turn, begun, begun.begin, None)
        for turn, begun in self._without_end.items():
            self._add_without_end(turn, begun, None)
        self._close(None)
        return _in_order(self.spans)

    def _is_running(self, turn: str, begun: _OpenTurn) -> bool:
        """Whether the turn is known to be running: exactly for this process, by liveness for others."""
        if word_of(turn) == process_word():
            return turn in turns_here()
        writer = self._writers.get(word_of(turn))
        return writer is not None and not begun.is_abandoned and runs(asdict(writer)) is True

    def _add_without_end(
        self, turn: str, begun: _OpenTurn, after: Checkpoint | None, how: str = "was cut short"
    ) -> None:
        """Add a turn without an end. Changes after its last sign of life cannot be attributed."""
        if begun.last_sign is not begun.begin:
            self._add_turn(turn, begun, begun.begin, begun.last_sign)
        doubt = f"nobody can tell who changed it: turn {self._number(turn)} {how}"
        self._add_turn(turn, begun, begun.last_sign, after, doubt)

    def _add_turn(
        self, turn: str, begun: _OpenTurn, begin: Checkpoint, end: Checkpoint | None, doubt: str = ""
    ) -> None:
        number = self._number(turn)
        if begun.is_blind:
            doubt = f"nobody can tell who changed it: turn {number} began without a checkpoint"
        is_relayed, blind = begun.is_relayed, begun.is_blind
        span = Span(begin, end, f"turn {number}", None, doubt, is_relayed=is_relayed, is_blind=blind)
        self._add(replace(span, turn=turn, number=number, began=begun.begin.seq))

    def _close(self, end: Checkpoint | None) -> None:
        """Add the declared changes and the dropped turns between the last checkpoint and `end`."""
        if self._last is not None and self._declared:
            self._add(Span(self._last, end, "the time when it was declared", frozenset(self._declared)))
        if self._last is not None and self._is_gap:
            what = "turns whose checkpoints were given up"
            self._add(Span(self._last, end, what, doubt=f"nobody can tell who changed it: it was in {what}"))
        self._declared, self._is_gap = set(), False

    def _number(self, turn: str) -> int:
        # The checkpoint is in the log before the turn that it begins.
        return self._numbers.get(turn, len(self._numbers) + 1)

    def _add(self, span: Span) -> None:
        if self._last is None:
            return  # without any checkpoint, nothing is known of files
        if self._target is not None:
            if span.end is not None and span.end.seq <= self._target.seq:
                return
            if span.begin.seq < self._target.seq:
                span = replace(span, begin=self._target)
        self.spans.append(span)


def _is_sign(entry: AnyEntry, begun: _OpenTurn) -> bool:
    """Whether an entry shows that a turn was running: not an imported one, nor the mark of a relayed turn."""
    return entry.origin is None and not (begun.is_relayed and isinstance(entry, Turn))


def _in_order(unordered: list[Span]) -> list[Span]:
    """The spans by their beginnings, without rewinds inside a turn, which are parts of it."""
    turns = [span for span in unordered if span.is_turn and not span.doubt]
    rest = [span for span in unordered if span.is_turn or not any(_is_within(span, turn) for turn in turns)]
    return sorted(rest, key=lambda span: (span.begin.seq, _end_of(span)))


def _is_within(span: Span, turn: Span) -> bool:
    return turn.begin.seq <= span.begin.seq and _end_of(span) <= _end_of(turn)


def _end_of(span: Span) -> float:
    return inf if span.end is None else span.end.seq


def spans(store: Store, history: History, entries: Iterable[AnyEntry], target: Checkpoint | None = None) -> list[Span]:
    """The session's own work in the entries of a log, in order; with `target`, only the part after it.

    A turn that was inherited is another session's, and continues there.
    """
    finder = _Finder(target, history.inherited_to)
    relevant = list(_relevant(entries))
    gone = given_up(store, (entry for entry in relevant if isinstance(entry, Checkpoint)), history.state.dropped)
    for entry in relevant:
        if isinstance(entry, Checkpoint) and entry.id in gone:
            finder.add_dropped(entry)
        elif isinstance(entry, Intent):
            try:
                finder.add_intent(history.whole(entry))
            except (Corrupt, NotFound):
                continue  # then all that changed counts
        else:
            finder.take(entry)
    return finder.finish()


def _relevant(entries: Iterable[AnyEntry]) -> Iterator[AnyEntry]:
    """The entries that matter for spans; of other entries of a turn, only the first after each checkpoint."""
    seen: set[str] = set()
    for entry in entries:
        if isinstance(entry, _RELEVANT):
            if isinstance(entry, Checkpoint):
                seen.clear()
            yield entry
        elif entry.turn is not None and entry.turn not in seen:
            seen.add(entry.turn)
            yield entry


def turns(store: Store, history: History) -> list[Span]:
    """Every turn that has checkpoints, as one span each."""
    parts: dict[int, list[Span]] = {}
    for span in spans(store, history, history.forward()):
        if span.is_turn and not span.is_blind:
            parts.setdefault(span.number, []).append(span)
    return [_joined(some) for some in parts.values()]


def get_turn(store: Store, history: History, turn: int | str | None) -> Span:
    """The turn with this number or id, with everything that may be its work; the newest by default."""
    spans_of_turns = turns(store, history)
    if turn is None and spans_of_turns:
        return max(spans_of_turns, key=lambda span: span.number)
    chosen = next((span for span in spans_of_turns if turn in (span.turn, span.number)), None)
    if chosen is None:
        raise NotFound("no turn with checkpoints" if turn is None else f"no turn {turn} with checkpoints")
    return chosen


def _joined(parts: list[Span]) -> Span:
    """A turn from its parts."""
    if parts[0].is_relayed:  # the end of its last tool is known: later changes are not shown as its own
        parts = [span for span in parts if not span.doubt] or [replace(parts[0], end=parts[0].begin)]
    return replace(parts[0], end=parts[-1].end)


def paths_in(root: Root, paths: Iterable[str], *, was_at: Iterable[str] = ()) -> frozenset[bytes]:
    """Paths relative to a root, from paths that are relative to the workspace or absolute.

    `was_at` are other paths of the root at the time when the paths were written.
    """
    leads = tuple(path_bytes(path).rstrip(b"/") + b"/" for path in {root.path, *was_at})
    return frozenset(_paths_in(root, leads, paths))


def _paths_in(root: Root, leads: tuple[bytes, ...], paths: Iterable[str]) -> Iterator[bytes]:
    for path in map(path_bytes, paths):
        lead = next((lead for lead in leads if path.startswith(lead)), None)
        if lead is not None:
            yield path[len(lead) :]
        elif root.name == WORKSPACE:
            yield path
