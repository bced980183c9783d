"""The examination of a log: its bytes, its folds, its blobs, and the session it was forked from. Only reads."""

from __future__ import annotations

import warnings
from collections import Counter, deque
from contextlib import closing
from typing import Literal, NamedTuple

from msgspec import Struct

from turnlog.errors import NotFound, TurnlogWarning
from turnlog.formats import unknown_type
from turnlog.log.codec import Damage
from turnlog.log.entry import FORMAT, AnyEntry, Checkpoint, Drop, Entry, Fold, Head, Intent, Set, Start, Unknown
from turnlog.log.fold import State, copy, fold, fork_state, from_fold
from turnlog.log.ids import handle_of
from turnlog.log.part import Fork
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import Log
from turnlog.store.capability import KeepFiles, Region, Repaired, ability
from turnlog.thread.history import History
from turnlog.thread.space.checkpointcontent import private_of

_REMEMBERED = 4096
_LISTED = 20


FindingKind = Literal["fold", "fork", "blob", "name", "empty", "newer", "rewind", "damage", "unreadable"]
"""`damage` is for a log that is no file: one that is has damaged regions. `unreadable`: the system does not read it."""


class Finding(Struct):
    """Something wrong with a log that is not a damaged region."""

    kind: FindingKind
    text: str
    seq: int | None = None


class Checkup(Struct):
    """One session's log, examined."""

    id: str
    title: str | None
    findings: list[Finding]
    path: str = ""
    size_bytes: int = 0
    entries: int = 0
    regions: list[Region] = []
    folds: list[int] = []
    """Fold entries that a repair leaves out."""
    repaired: Repaired | None = None
    unknown: dict[str, int] = {}
    """How many records of unknown types there are. They are not errors."""
    left: int = 0
    """How many regions and findings there still are after the repair."""

    @property
    def is_sound(self) -> bool:
        """Whether there was nothing to say from the beginning."""
        return not self.regions and not self.findings

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong, or nothing any more."""
        return self.is_sound if self.repaired is None else self.left == 0

    @property
    def is_newer(self) -> bool:
        """Whether all there is to say is that a newer Turnlog wrote it: that is no damage."""
        return bool(self.findings) and not self.regions and all(finding.kind == "newer" for finding in self.findings)

    @property
    def is_repairable(self) -> bool:
        """Whether a repair would change anything."""
        return bool(self.folds) or any(region.is_last or not is_left(region) for region in self.regions)


def is_left(region: Region) -> bool:
    """Whether a repair leaves this line as it is: it counts, or it is the only place where its entry is."""
    return region.is_used or region.is_stray


def examine(home: Home, session_id: str, *, title: str | None, damaged_blobs: frozenset[str], alone: bool) -> Checkup:
    """Return what is wrong with one session. With `alone`, the session that it continues is checked for damage, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TurnlogWarning)  # a missing blob is a finding here, once
        return _Examination(home, session_id, damaged_blobs, alone).run(title)


class _BadBlob(NamedTuple):
    digest: str
    problem: str
    seq: int
    entry_id: str
    """The entry that needs it."""


class _Examination:
    def __init__(self, home: Home, session_id: str, damaged_blobs: frozenset[str], alone: bool) -> None:
        self._home = home
        self._id = session_id
        self._damaged_blobs = damaged_blobs
        self._is_alone = alone
        self._history = History(interior(home).store, interior(home).store.open(session_id, read_only=True))
        self._findings: list[Finding] = []
        self._folds = _Folds(self._history)
        self._is_first = True
        self._bad_blobs: list[_BadBlob] = []
        self._dropped: set[str] = set()
        self._intent = 0
        self._unknown: Counter[str] = Counter()

    def run(self, title: str | None) -> Checkup:
        files = ability(interior(self._home).store, KeepFiles)
        checkup = Checkup(self._id, title, self._findings)
        try:
            if self._is_newer():
                return checkup
            self._check_fork()
            if files is None:
                checkup.entries = self._read_entries()
            else:
                survey = files.examine(self._id, self._visit)
                checkup.path, checkup.size_bytes = survey.path, survey.size_bytes
                checkup.entries, checkup.regions = survey.entries, survey.regions
        finally:
            self._history.close()
        if files is not None and not checkup.size_bytes:
            self._add_finding("empty", "The file is empty: it was cut to nothing, or never got its first line.")
        self._add_blob_findings()
        self._add_rewind_finding()
        checkup.folds = self._add_fold_findings(checkup.regions, can_repair=files is not None)
        checkup.unknown = dict(self._unknown)
        return checkup

    def _is_newer(self) -> bool:
        first = next((item for item in self._history.log.read() if isinstance(item, Entry)), None)
        if not isinstance(first, Start) or first.format <= FORMAT:
            return False
        text = f"It is in format {first.format}, which only a newer Turnlog can read: upgrade this one."
        self._add_finding("newer", text)
        return True

    def _add_rewind_finding(self) -> None:
        if self._intent:
            self._add_finding(
                "rewind",
                f"Entry {self._intent} began to change files, and nothing says that it was finished: a rewind was "
                f"interrupted, or still runs. `turnlog rewind --continue -s {handle_of(self._id)}` finishes it, "
                "`--abort` takes it back.",
                self._intent,
            )

    def _add_fold_findings(self, regions: list[Region], *, can_repair: bool) -> list[int]:
        """Return the folds that a repair leaves out."""
        disagreeing = self._folds.unexplained(regions)
        for seq in disagreeing:
            text = f"The fold in entry {seq} does not agree with the entries before it."
            self._add_finding("fold", f"{text} A repair leaves it out." if can_repair else text, seq)
        return disagreeing if can_repair else []

    def _read_entries(self) -> int:
        """Visit the entries of a log that is no file, and return their number; damaged ones are findings."""
        entries = 0
        for item in self._history.log.read():
            if isinstance(item, Damage):
                what = f"Entry {item.seq}" if item.seq else "An entry"
                self._add_finding(
                    "damage", f"{what} is not what was written ({item.kind}): look for a backup.", item.seq
                )
            else:
                entries += 1
                self._visit(item)
        return entries

    def _add_finding(self, kind: FindingKind, text: str, seq: int | None = None) -> None:
        self._findings.append(Finding(kind, text, seq))

    def _check_fork(self) -> None:
        fork = self._history.fork
        if fork is None:
            self._folds.begin(State(), is_whole=True)
            return
        try:
            parent = interior(self._home).store.open(fork.session, read_only=True, first=fork.base)
        except NotFound:
            text = f"Session {fork.session}, which it continues, is gone, and entries 1 to {fork.seq} with it."
            self._add_finding("fork", text)
            return
        with closing(parent):
            self._check_parent(fork, parent)
        is_whole = sum(1 for _ in self._history.lines(0, fork.seq + 1)) == fork.seq
        self._folds.begin(fork_state(self._history.state_at(fork.seq), fork.seq), is_whole=is_whole)

    def _check_parent(self, fork: Fork, parent: Log) -> None:
        entry = self._history.at(fork.seq)
        if entry is None or entry.id != fork.id:
            what = "cannot be read" if entry is None else "is another one now"
            self._add_finding(
                "fork", f"Entry {fork.seq} of session {fork.session}, which it continues, {what}.", fork.seq
            )
        if self._is_alone and any(isinstance(item, Damage) for item in parent.read(before=fork.seq + 1)):
            self._add_finding(
                "fork", f"Session {fork.session}, which it continues, is damaged: examine that one as well."
            )

    def _visit(self, entry: AnyEntry) -> None:
        if self._is_first:
            self._is_first = False
            if isinstance(entry, Start) and entry.session_id != self._id:
                self._add_finding("name", f"The file holds session {entry.session_id}: it was renamed or copied.")
        for digest in entry.blobs:
            self._check_blob(digest, entry)
        kind = unknown_type(entry)
        if kind:
            self._unknown[kind] += 1
        if isinstance(entry, Drop):
            self._dropped.update(entry.checkpoints)
        if isinstance(entry, Intent):
            self._intent = entry.seq
        elif isinstance(entry, Head) and entry.intent == self._intent:
            self._intent = 0
        if entry.critical and isinstance(entry, Unknown):
            self._add_finding("newer", f"Entry {entry.seq} can only be understood by a newer Turnlog.", entry.seq)
        self._folds.visit(entry)

    def _check_blob(self, digest: str, entry: AnyEntry) -> None:
        try:
            is_there = interior(self._home).store.has(digest)
        except NotFound:
            is_there = False
        if is_there and digest not in self._damaged_blobs:
            return
        if not is_there and isinstance(entry, Checkpoint) and digest in private_of(entry):
            return  # the contents of ignored files stay in the home where they were saved
        self._bad_blobs.append(_BadBlob(digest, "damaged" if is_there else "missing", entry.seq, entry.id))

    def _add_blob_findings(self) -> None:
        """Add a finding for each bad blob, except those of checkpoints that were given up later in the log."""
        bad_blobs = [blob for blob in self._bad_blobs if blob.entry_id not in self._dropped]
        for digest, problem, seq, _ in bad_blobs[:_LISTED]:
            text = f"Blob {digest}, which entry {seq} needs, is {problem}: a short stand-in is shown instead."
            self._add_finding("blob", text, seq)
        if len(bad_blobs) > _LISTED:
            self._add_finding("blob", f"{len(bad_blobs) - _LISTED} more blobs are missing or damaged.")


class _Folds:
    """Folds the log from its beginning, and compares the state with each fold entry."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._state: State | None = None
        self._recent: deque[AnyEntry] = deque(maxlen=_REMEMBERED)
        self._last = 0
        self._is_whole = False
        """Whether no number is missing since the last fold: an entry that was lost makes a fold know more."""
        self._disagreeing: list[tuple[int, int]] = []
        """Fold entries that do not agree, each with the fold before it."""

    def begin(self, state: State, *, is_whole: bool) -> None:
        """Set the state that the log starts from, and whether all entries before it were there."""
        self._state = state
        self._is_whole = is_whole

    def visit(self, entry: AnyEntry) -> None:
        """Take one more entry into account."""
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
            self._disagreeing.append((self._last, entry.seq))
        self._state = copied
        self._last = entry.seq
        self._is_whole = True

    def unexplained(self, regions: list[Region]) -> list[int]:
        """The folds that do not agree although nothing before them is damaged or missing."""
        return [
            seq
            for last, seq in self._disagreeing
            if not any(last <= region.older < seq or (region.newer or 0) == seq for region in regions)
        ]
