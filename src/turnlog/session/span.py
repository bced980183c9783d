"""The session's own work in its log: what changed inside these stretches is the session's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from turnlog.errors import Corrupt, NotFound
from turnlog.log.entry import AnyEntry, Changed, Checkpoint, Head, Intent, Root, Turn
from turnlog.session.intent import paths_of
from turnlog.session.snapshot import WORKSPACE
from turnlog.workspace.tree import path_bytes

_TELLING = (Checkpoint, Turn, Head, Intent, Changed)


class Span(Struct, frozen=True):
    """A stretch of the session's own work in the log: a turn, a rewind of files, what the caller declared."""

    begin: Checkpoint
    end: Checkpoint | None
    """None while it goes on."""
    what: str
    paths: frozenset[str] | None = None
    """The only paths it is about; None means all."""
    is_sure: bool = True
    """False where others may have worked in it, too: its own checkpoints were given up."""

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn, and not a rewind or something declared."""
        return self.what.startswith("turn ")


class _Finder:
    """Goes through a log and finds them."""

    def __init__(self, target: Checkpoint | None) -> None:
        self.found: list[Span] = []
        self._target = target
        self._begun: dict[str, Checkpoint] = {}
        self._numbers: dict[str, int] = {}
        self._seen: dict[int, Checkpoint] = {}
        self._last: Checkpoint | None = None
        self._declared: set[str] = set()
        self._is_gap = False
        self._intents: dict[int, Intent] = {}

    def checkpoint(self, entry: Checkpoint) -> None:
        self._close(entry)
        self._seen[entry.seq] = self._last = entry
        if entry.when == "begin" and entry.turn is not None:
            self._begun[entry.turn] = entry
        elif entry.when == "end" and entry.turn in self._begun:
            self._add(self._begun.pop(entry.turn), entry, self._name(entry.turn))

    def dropped(self, entry: Checkpoint) -> None:
        self._is_gap = True
        if entry.turn is not None:
            self._begun.pop(entry.turn, None)

    def turn(self, entry: Turn, turn: str) -> None:
        if entry.state == "begin":
            self._numbers[turn] = len(self._numbers) + 1
        else:
            self._begun.pop(turn, None)

    def head(self, entry: Head) -> None:
        if entry.before in self._seen and entry.after in self._seen:
            intent = self._intents.get(entry.intent)
            paths = None if intent is None else paths_of(intent, entry)
            self._add(self._seen[entry.before], self._seen[entry.after], f"{entry.why} {entry.seq}", paths=paths)

    def intent(self, entry: Intent) -> None:
        self._intents = {entry.seq: entry}

    def changed(self, entry: Changed) -> None:
        if not self._begun:  # inside a turn it is the session's anyway
            self._declared.update(entry.paths)

    def end(self) -> list[Span]:
        for turn, begin in self._begun.items():
            self._add(begin, None, self._name(turn))
        self._close(None)
        return self.found

    def _close(self, end: Checkpoint | None) -> None:
        """What happened between the last checkpoint that is kept and this one, outside of turns."""
        if self._last is not None and self._declared:
            self._add(self._last, end, "the time when it was declared", paths=frozenset(self._declared))
        if self._last is not None and self._is_gap:
            self._add(self._last, end, "turns whose checkpoints were given up", is_sure=False)
        self._declared, self._is_gap = set(), False

    def _name(self, turn: str) -> str:
        # The checkpoint is in the log before the turn that it begins.
        return f"turn {self._numbers.get(turn, len(self._numbers) + 1)}"

    def _add(
        self,
        begin: Checkpoint,
        end: Checkpoint | None,
        what: str,
        *,
        paths: frozenset[str] | None = None,
        is_sure: bool = True,
    ) -> None:
        if self._target is not None:
            if end is not None and end.seq <= self._target.seq:
                return
            if begin.seq < self._target.seq:
                begin = self._target
        self.found.append(Span(begin, end, what, paths, is_sure))


def spans(
    entries: Iterable[AnyEntry],
    target: Checkpoint | None = None,
    *,
    whole: Callable[[Intent], Intent],
    given_up: Callable[[list[Checkpoint]], Collection[str]],
) -> list[Span]:
    """The stretches of own work in a log, in order; those after `target` only, cut where it lies inside one.

    `whole` brings a payload back into its entry; `given_up` says the ids of those checkpoints that were.
    """
    finder = _Finder(target)
    telling = [entry for entry in entries if isinstance(entry, _TELLING)]
    gone = given_up([entry for entry in telling if isinstance(entry, Checkpoint)])
    for entry in telling:
        if isinstance(entry, Checkpoint):
            (finder.dropped if entry.id in gone else finder.checkpoint)(entry)
        elif isinstance(entry, Turn) and entry.turn is not None:
            finder.turn(entry, entry.turn)
        elif isinstance(entry, Head):
            finder.head(entry)
        elif isinstance(entry, Intent):
            try:
                finder.intent(whole(entry))
            except (Corrupt, NotFound):
                continue  # then all that changed counts
        elif isinstance(entry, Changed):
            finder.changed(entry)
    return finder.end()


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
