"""The examination of a log: its bytes, its folds, its blobs, and the session it was forked from. Only reads."""

from __future__ import annotations

import warnings
from collections import Counter, deque

from turnlog.cli.draw.diagnosis import Checkup, Finding
from turnlog.errors import NotFound, TurnlogWarning
from turnlog.formats import unknown_type
from turnlog.log.codec import Damage
from turnlog.log.entry import FORMAT, AnyEntry, Entry, Fold, Head, Intent, Set, Start
from turnlog.log.fold import State, copy, fold, fork_state, from_fold
from turnlog.log.ids import handle_of
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store.capability import KeepFiles, Region, ability
from turnlog.thread.history import History

_REMEMBERED = 4096
_LISTED = 20


def examine(home: Home, session_id: str, *, title: str | None, damaged_blobs: frozenset[str], alone: bool) -> Checkup:
    """Everything that is wrong with one session. `alone`: no other is examined, so its parent is looked at as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TurnlogWarning)  # a missing blob is a finding here, once
        return _Examination(home, session_id, damaged_blobs, alone).run(title)


class _Examination:
    def __init__(self, home: Home, session_id: str, damaged_blobs: frozenset[str], alone: bool) -> None:
        self._home = home
        self._id = session_id
        self._damaged_blobs = damaged_blobs
        self._is_alone = alone
        self._history = History(interior(home).store, interior(home).store.open(session_id, read_only=True))
        self._found: list[Finding] = []
        self._folds = _Folds(self._history)
        self._is_first = True
        self._bad_blobs = 0
        self._intent = 0
        self._unknown: Counter[str] = Counter()

    def run(self, title: str | None) -> Checkup:
        files = ability(interior(self._home).store, KeepFiles)
        path, size, regions = "", 0, []
        first = next((item for item in self._history.log.read() if isinstance(item, Entry)), None)
        if isinstance(first, Start) and first.format > FORMAT:
            self._history.close()
            text = f"It is in format {first.format}, which only a newer Turnlog can read: upgrade this one."
            return Checkup(self._id, title, path, size, 0, [], [Finding("newer", text)])
        try:
            self._check_fork()
            if files is not None:
                survey = files.examine(self._id, self._visit)
                path, size, entries, regions = survey.path, survey.size_bytes, survey.entries, survey.regions
            else:
                entries = self._read()
        finally:
            self._history.close()
        if files is not None and not size:
            self._say("empty", "The file is empty: it was cut to nothing, or never got its first line.")
        if self._bad_blobs > _LISTED:
            self._say("blob", f"{self._bad_blobs - _LISTED} more blobs are missing or damaged.")
        if self._intent:
            self._say(
                "rewind",
                f"Entry {self._intent} began to change files, and nothing says that it was finished: a rewind was "
                f"interrupted, or still runs. `turnlog rewind --continue -s {handle_of(self._id)}` finishes it, "
                "`--abort` takes it back.",
                self._intent,
            )
        wrong = self._folds.unexplained(regions)
        for seq in wrong:
            text = f"The fold in entry {seq} does not agree with the entries before it."
            self._say("fold", text if files is None else f"{text} A repair leaves it out.", seq)
        folds = wrong if files else []
        return Checkup(
            self._id, title, path, size, entries, regions, self._found, folds=folds, unknown=dict(self._unknown)
        )

    def _read(self) -> int:
        """A log that is no file: how many entries it has. Those that are not what was written are findings."""
        entries = 0
        for item in self._history.log.read():
            if isinstance(item, Damage):
                what = f"Entry {item.seq}" if item.seq else "An entry"
                self._say("damage", f"{what} is not what was written ({item.kind}): look for a backup.", item.seq)
            else:
                entries += 1
                self._visit(item)
        return entries

    def _say(self, kind: str, text: str, seq: int | None = None) -> None:
        self._found.append(Finding(kind, text, seq))

    # ── the session it was forked from ────────────────────────────────────────────────────────────

    def _check_fork(self) -> None:
        fork = self._history.fork
        if fork is None:
            self._folds.begin(State(), is_whole=True)
            return
        try:
            parent = interior(self._home).store.open(fork.session, read_only=True, first=fork.base)
        except NotFound:
            text = f"Session {fork.session}, which it continues, is gone, and entries 1 to {fork.seq} with it."
            self._say("fork", text)
            return
        entry = self._history.at(fork.seq)
        if entry is None or entry.id != fork.id:
            what = "cannot be read" if entry is None else "is another one now"
            self._say("fork", f"Entry {fork.seq} of session {fork.session}, which it continues, {what}.", fork.seq)
        if self._is_alone and any(isinstance(item, Damage) for item in parent.read(before=fork.seq + 1)):
            self._say("fork", f"Session {fork.session}, which it continues, is damaged: examine that one as well.")
        parent.close()
        is_whole = sum(1 for _ in self._history.forward(0, fork.seq + 1)) == fork.seq
        self._folds.begin(fork_state(self._history.state_at(fork.seq), fork.seq), is_whole=is_whole)

    # ── every entry ───────────────────────────────────────────────────────────────────────────────

    def _visit(self, entry: AnyEntry) -> None:
        if self._is_first:
            self._is_first = False
            if isinstance(entry, Start) and entry.session_id != self._id:
                self._say("name", f"The file holds session {entry.session_id}: it was renamed or copied.")
        for digest in entry.blobs:
            self._check_blob(digest, entry)
        kind = unknown_type(entry)
        if kind:
            self._unknown[kind] += 1
        if isinstance(entry, Intent):
            self._intent = entry.seq
        elif isinstance(entry, Head) and entry.intent == self._intent:
            self._intent = 0
        if entry.critical and entry.type == "?":
            self._say("newer", f"Entry {entry.seq} can only be understood by a newer Turnlog.", entry.seq)
        self._folds.visit(entry)

    def _check_blob(self, digest: str, entry: AnyEntry) -> None:
        try:
            is_there = interior(self._home).store.has(digest)
        except NotFound:
            is_there = False
        if is_there and digest not in self._damaged_blobs:
            return
        self._bad_blobs += 1
        if self._bad_blobs <= _LISTED:
            what = "is damaged" if is_there else "is missing"
            text = f"Blob {digest}, which entry {entry.seq} needs, {what}: a short stand-in is shown instead."
            self._say("blob", text, entry.seq)


class _Folds:
    """Folds the log from its beginning and compares with what its fold entries say."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._state: State | None = None
        self._recent: deque[AnyEntry] = deque(maxlen=_REMEMBERED)
        self._last = 0
        self._is_whole = False
        """Whether no number is missing since the last fold: an entry that was lost makes a fold know more."""
        self._wrong: list[tuple[int, int]] = []
        """Fold entries that do not agree, each with the fold before it."""

    def begin(self, state: State, *, is_whole: bool) -> None:
        """What the log starts from, and whether nothing is missing from that."""
        self._state = state
        self._is_whole = is_whole

    def visit(self, entry: AnyEntry) -> None:
        """One more entry."""
        if self._state is not None and entry.seq != self._state.seq + 1:
            self._is_whole = False
        if isinstance(entry, Fold):
            self._compare(entry)
        if self._state is not None:
            self._fold(self._state, entry)
        self._recent.append(entry)

    def _fold(self, state: State, entry: AnyEntry) -> None:
        whole = self._history.whole(entry) if isinstance(entry, (Set, Head)) else entry
        fold(state, whole, is_repeat=self._history.is_repeat(entry))

    def _compare(self, entry: Fold) -> None:
        stored = from_fold(self._history.whole(entry))
        if stored is None:
            return  # of another version, which may have counted otherwise
        if len(self._recent) == _REMEMBERED and self._recent[0].seq > stored.seq:
            return  # too far back to tell
        copied = copy(stored)
        for other in self._recent:
            if other.seq > copied.seq:
                self._fold(copied, other)
        if self._state is not None and None in (copied.calls, self._state.calls):
            # a fold may know more of these, or less
            copied.calls = self._state.calls = copied.calls or self._state.calls
        if self._is_whole and copied != self._state:
            self._wrong.append((self._last, entry.seq))
        self._state = copied
        self._last = entry.seq
        self._is_whole = True

    def unexplained(self, regions: list[Region]) -> list[int]:
        """The folds that do not agree although nothing before them is damaged or missing."""
        return [
            seq
            for last, seq in self._wrong
            if not any(last <= region.older < seq or (region.newer or 0) == seq for region in regions)
        ]
