"""The session's own work in its log: what changed inside these stretches is the session's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Note, Root, Turn, Writer
from turnlog.log.ids import process_word, word_of
from turnlog.machine.process import lives
from turnlog.rewind.intent import paths_of
from turnlog.rewind.nocheckpoint import reason_of
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.store import Store
from turnlog.thread.appender import turns_here
from turnlog.thread.content import given_up
from turnlog.thread.history import History
from turnlog.thread.target import number_turn
from turnlog.workspace.tree import path_bytes

_TELLING = (Checkpoint, Turn, Head, Intent, Changed, Writer)


class Span(Struct, frozen=True):
    """A stretch of the session's own work in the log: a turn, a rewind of files, what the caller declared."""

    begin: Checkpoint
    end: Checkpoint | None
    """None while it goes on."""
    what: str
    paths: frozenset[str] | None = None
    """The only paths it is about; None means all."""
    doubt: str = ""
    """Why others may have worked in it, too; empty where it is the session's for sure."""
    is_theirs: bool = False
    """Whether it is surely not the session's."""
    turn: str | None = None
    number: int = 0
    """Of a turn."""
    began: int = 0
    """The entry that a turn began with, wherever this part of it begins."""
    is_relayed: bool = False
    """Of a turn: whether the hooks of an agent told of it, which say where each tool ended."""
    is_blind: bool = False
    """Of a turn: whether it has no checkpoint at its beginning, so that this begins with one before it."""

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn or a part of one, and not a rewind or something declared."""
        return self.turn is not None


class _Begun(Struct):
    """A turn of which no end was seen so far."""

    begin: Checkpoint
    sure: Checkpoint
    """The last checkpoint before something that the turn itself wrote: it went on then."""
    after: Checkpoint | None = None
    """The first one behind that."""
    is_left: bool = False
    """Whether its process began another one since."""
    is_relayed: bool = False
    is_blind: bool = False


class _Finder:
    """Goes through a log and finds them."""

    def __init__(self, target: Checkpoint | None, inherited_to: int) -> None:
        self.found: list[Span] = []
        self._target = target
        self._inherited_to = inherited_to
        self._begun: dict[str, _Begun] = {}
        self._cut: dict[str, _Begun] = {}
        """Turns that are over, and have no checkpoint at their end."""
        self._numbers: dict[str, int] = {}
        self._writers: dict[str, dict[str, Any]] = {}
        self._seen: dict[int, Checkpoint] = {}
        self._last: Checkpoint | None = None
        self._declared: set[str] = set()
        self._is_gap = False
        self._intents: dict[int, Intent] = {}

    def take(self, entry: AnyEntry) -> None:
        """One more entry, whatever it is."""
        if isinstance(entry, Checkpoint):
            self._checkpoint(entry)
        begun = self._begun.get(entry.turn) if entry.turn is not None else None
        if begun is not None and self._last is not None and _is_sign(entry, begun):
            begun.sure, begun.after = self._last, None
        if isinstance(entry, Note) and entry.turn is not None and begun is None and self._last is not None:
            if reason_of(entry) is not None:
                self._begun[entry.turn] = _Begun(self._last, self._last, is_blind=True)
        elif isinstance(entry, Turn) and entry.turn is not None:
            self._turn(entry, entry.turn)
        elif isinstance(entry, Head):
            self._head(entry)
        elif isinstance(entry, Changed) and entry.turn not in self._begun:
            self._declared.update(entry.paths)
        elif isinstance(entry, Writer):
            self._writers[entry.word] = asdict(entry)

    def _checkpoint(self, entry: Checkpoint) -> None:
        self._close(entry)
        self._seen[entry.seq] = self._last = entry
        for begun in self._begun.values():
            begun.after = begun.after or entry
        for turn, begun in self._cut.items():
            self._add_cut(turn, begun, entry)
        self._cut = {}
        if entry.turn is None:
            return
        if entry.when == "begin":
            self._begun[entry.turn] = _Begun(entry, entry)
        elif entry.when == "end" and entry.turn in self._begun:
            begun = self._begun.pop(entry.turn)
            self._add_turn(entry.turn, begun, begun.begin, entry)

    def dropped(self, entry: Checkpoint) -> None:
        self._is_gap = True
        if entry.turn is not None:
            self._begun.pop(entry.turn, None)

    def _turn(self, entry: Turn, turn: str) -> None:
        if entry.state != "begin":
            begun = self._begun.pop(turn, None)
            if begun is not None:
                self._cut[turn] = begun
            return
        if turn in self._begun:
            self._begun[turn].is_relayed = entry.native is not None
        number_turn(self._numbers, entry)
        for other, begun in self._begun.items():
            begun.is_left = begun.is_left or (other != turn and word_of(other) == word_of(turn))

    def _head(self, entry: Head) -> None:
        if entry.before in self._seen and entry.after in self._seen:
            intent = self._intents.get(entry.intent)
            paths = None if intent is None else paths_of(intent, entry)
            what = f"{entry.why} {entry.seq}"
            self._add(Span(self._seen[entry.before], self._seen[entry.after], what, paths))

    def intent(self, entry: Intent) -> None:
        self._intents = {entry.seq: entry}

    def end(self) -> list[Span]:
        for turn, begun in self._begun.items():
            if begun.begin.seq <= self._inherited_to or not self._is_running(turn, begun):
                self._add_cut(turn, begun, begun.after)
            elif begun.is_relayed:  # nobody tells of an interruption, so it may be over
                self._add_cut(turn, begun, None, "is still open, and no tool of it has ended since")
            else:
                self._add_turn(turn, begun, begun.begin, None)
        for turn, begun in self._cut.items():
            self._add_cut(turn, begun, None)
        self._close(None)
        return _in_order(self.found)

    def _is_running(self, turn: str, begun: _Begun) -> bool:
        """Whether the turn is known to be running: exactly for this process, by liveness for others."""
        if word_of(turn) == process_word():
            return turn in turns_here()
        who = self._writers.get(word_of(turn))
        return who is not None and not begun.is_left and lives(who) is True

    def _add_cut(self, turn: str, begun: _Begun, after: Checkpoint | None, how: str = "was cut short") -> None:
        """A turn without an end: what came behind its last sign of life is nobody's for sure."""
        if begun.sure is not begun.begin:
            self._add_turn(turn, begun, begun.begin, begun.sure)
        doubt = f"nobody can tell who changed it: turn {self._number(turn)} {how}"
        self._add_turn(turn, begun, begun.sure, after, doubt)

    def _add_turn(self, turn: str, begun: _Begun, begin: Checkpoint, end: Checkpoint | None, doubt: str = "") -> None:
        number = self._number(turn)
        if begun.is_blind:
            doubt = f"nobody can tell who changed it: turn {number} began without a checkpoint"
        is_relayed, blind = begun.is_relayed, begun.is_blind
        span = Span(begin, end, f"turn {number}", None, doubt, is_relayed=is_relayed, is_blind=blind)
        self._add(replace(span, turn=turn, number=number, began=begun.begin.seq))

    def _close(self, end: Checkpoint | None) -> None:
        """What happened between the last checkpoint that is kept and this one, outside of turns."""
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
        if self._target is not None:
            if span.end is not None and span.end.seq <= self._target.seq:
                return
            if span.begin.seq < self._target.seq:
                span = replace(span, begin=self._target)
        self.found.append(span)


def _is_sign(entry: AnyEntry, begun: _Begun) -> bool:
    """Whether an entry says that a turn went on: not what was brought in later, nor that it was over at some time."""
    return entry.origin is None and not (begun.is_relayed and isinstance(entry, Turn))


def _in_order(unordered: list[Span]) -> list[Span]:
    """By their beginnings; a rewind inside a turn is a part of it."""
    turns = [span for span in unordered if span.is_turn and not span.doubt]
    rest = [span for span in unordered if span.is_turn or not any(_is_within(span, turn) for turn in turns)]
    return sorted(rest, key=lambda span: (span.begin.seq, _end_of(span)))


def _is_within(span: Span, turn: Span) -> bool:
    return turn.begin.seq <= span.begin.seq and _end_of(span) <= _end_of(turn)


def _end_of(span: Span) -> float:
    return inf if span.end is None else span.end.seq


def spans(store: Store, history: History, entries: Iterable[AnyEntry], target: Checkpoint | None = None) -> list[Span]:
    """The stretches of own work in the entries of a log, in order; those after `target` only, cut where it lies in one.

    What the session inherited is another session's, and goes on there.
    """
    finder = _Finder(target, history.inherited_to)
    telling = list(_telling(entries))
    gone = given_up(store, (entry for entry in telling if isinstance(entry, Checkpoint)), history.state.dropped)
    for entry in telling:
        if isinstance(entry, Checkpoint) and entry.id in gone:
            finder.dropped(entry)
        elif isinstance(entry, Intent):
            try:
                finder.intent(history.whole(entry))
            except (Corrupt, NotFound):
                continue  # then all that changed counts
        else:
            finder.take(entry)
    return finder.end()


def _telling(entries: Iterable[AnyEntry]) -> Iterator[AnyEntry]:
    """The entries that say something of stretches: of what a turn says, only the first behind each checkpoint."""
    heard: set[str] = set()
    for entry in entries:
        if isinstance(entry, _TELLING):
            if isinstance(entry, Checkpoint):
                heard.clear()
            yield entry
        elif entry.turn is not None and entry.turn not in heard:
            heard.add(entry.turn)
            yield entry


def paths_in(root: Root, paths: Iterable[str], *, was_at: Iterable[str] = ()) -> frozenset[bytes]:
    """Paths as a root has them: those that were declared are relative to the workspace, or absolute.

    `was_at` is where else it lay when the paths were written down.
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
