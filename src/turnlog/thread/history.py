"""A log and the logs it was forked from, read as one: its path, its past states, its payloads."""

from __future__ import annotations

import threading
import warnings
from bisect import bisect_left
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Corrupt, Invalid, NotFound, TurnlogWarning, Unsupported
from turnlog.log.codec import Damage
from turnlog.log.entry import FORMAT, AnyEntry, Entry, Fold, Head, Set, Start
from turnlog.log.fold import State, copy, fold, fork_state, from_fold
from turnlog.log.part import Fork
from turnlog.log.payload import restore
from turnlog.store import Log, Store, derived
from turnlog.store.forked import renew_after_fork

_RECENT = 1024
_FAR = 512
"""A parent that is this many entries back is looked up instead of read towards."""


class History:
    """The entries of one session, including inherited ones. Not thread-safe: hold `mutex` to share it."""

    def __init__(self, store: Store, log: Log) -> None:
        self.id = log.id
        self.is_closed = False
        self._opened = store, log
        self.mutex = threading.RLock()
        self.state = State()
        self.since_fold = 0
        """How many entries `load` read after the newest fold."""
        self._recent: list[AnyEntry] = []
        """The newest entries of the log, oldest first, without gaps."""
        self._fork: Fork | None = None
        self._first: str | None = None
        self._parent: History | None = None
        self._has_start = False
        self._version: tuple[object, ...] = ()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Replace the mutex in a child process: a thread of the parent may have held it, and cannot release it here."""
        self.mutex = threading.RLock()

    @property
    def store(self) -> Store:
        """The store of the session's logs and blobs."""
        self.refuse_closed()
        return self._opened[0]

    @property
    def log(self) -> Log:
        """The session's own log."""
        self.refuse_closed()
        return self._opened[1]

    def refuse_closed(self) -> None:
        """Raise `Invalid` if the history is closed."""
        if self.is_closed:
            raise Invalid(f"session {self.id} is closed", hint=f"open it again with home.resume({self.id!r})")

    # ── what is known ─────────────────────────────────────────────────────────────────────────────

    def load(self) -> None:
        """Load the state from the end of the log, back to the newest fold."""
        self._recent = []
        version = derived.version(self.log)
        self.state, self._recent = self._state_before(None)
        self._version = (version, *self._versions_above())
        refuse_newer(self.id, self.state.start.get("format", FORMAT))
        folds = (behind for behind, entry in enumerate(reversed(self._recent)) if type(entry) is Fold)
        self.since_fold = next(folds, len(self._recent))

    def renew(self) -> None:
        """Load the state again if any process erased an entry since."""
        version = derived.version(self.log), *self._versions_above()
        if version != self._version:
            self._recent = []
            self.state, self._recent = self._state_before(self.state.seq + 1)
            self._version = version  # last, because the state is not certain if the load fails

    def _versions_above(self) -> list[object]:
        if self.fork is None:
            return []
        if self._parent is not None and derived.version(self._parent.log) is None:
            self._parent.close()  # the log was moved, or its version is unknown
            self._parent = None
        above = self._above()
        return [derived.version(above.log), *above._versions_above()]

    def refuse_critical(self) -> None:
        """Refuse to continue a log with entries that a newer version marked as critical."""
        if self.state.critical:
            kinds = ", ".join(self.state.critical)
            raise Unsupported(
                f"session {self.id} has entries that only a newer Turnlog understands: {kinds}",
                hint="upgrade Turnlog; entries() and messages() still work",
            )

    def catch_up(self) -> list[AnyEntry]:
        """Fold and return what has been appended since."""
        new = [item for item in self.log.read(after=self.state.seq) if isinstance(item, Entry)]
        self.take(new)
        return new

    def take(self, entries: list[AnyEntry]) -> None:
        """Fold entries that directly follow the state."""
        for entry in entries:
            if entry.blobs or entry.again:
                fold(self.state, self._light(entry), is_repeat=self.is_repeat(entry))
            else:
                fold(self.state, entry)
        self._recent.extend(entries)
        if len(self._recent) > 2 * _RECENT:
            self._recent = self._recent[-_RECENT:]  # not in place: another thread may be reading the old list

    def is_repeat(self, entry: AnyEntry) -> bool:
        """Whether an entry repeats an earlier one that can be read."""
        return entry.again > 0 and self.at(entry.again) is not None

    def original(self, seq: int) -> int:
        """The `seq` of the entry that entry `seq` repeats; `seq` itself if it repeats none that can be read."""
        entry = self.at(seq)
        while entry is not None and entry.again:
            earlier = self.at(entry.again)
            if earlier is None:
                break
            seq, entry = earlier.seq, earlier
        return seq

    def state_at(self, seq: int) -> State:
        """The state as of entry `seq`."""
        if self.state.seq and seq >= self.state.seq:
            return copy(self.state)
        if seq <= self.inherited_to:
            return self._above().state_at(seq) if seq > 0 else State()
        return self._state_before(seq + 1)[0]

    def _state_before(self, before: int | None) -> tuple[State, list[AnyEntry]]:
        """The state as of all entries below `before`, and the entries read for it, oldest first."""
        collected: list[AnyEntry] = []
        state: State | None = None
        for item in self.log.read(before=before, reverse=True):
            if isinstance(item, Damage):
                continue
            if state is not None and item.seq <= state.seq:
                break
            collected.append(item)
            if state is None and isinstance(item, Fold):
                state = from_fold(self._light(item))
        if state is None:
            fork = self.fork
            state = fork_state(self._above().state_at(fork.seq), fork.seq) if fork else State()
        collected.reverse()
        for entry in collected:
            fold(state, self._light(entry), is_repeat=self.is_repeat(entry))
        return state, collected

    def _light(self, entry: Any) -> Any:
        """The entry, with its payloads if folding needs them: facts and states do, messages do not."""
        if entry.blobs and isinstance(entry, (Set, Head, Fold)):
            return self.whole(entry)
        return entry

    def whole(self, entry: Any) -> Any:
        """The entry with its payloads restored."""
        return restore(entry, self._get) if entry.blobs else entry

    def whole_at(self, seq: int) -> Any:
        """The entry with that `seq`, with its payloads restored; None if there is none."""
        entry = self.at(seq)
        return None if entry is None else self.whole(entry)

    def _get(self, digest: str) -> bytes | None:
        try:
            return self.store.get(digest)
        except (NotFound, Corrupt) as error:
            warnings.warn(f"{error}; a short stand-in is shown instead", TurnlogWarning, stacklevel=2)
            return None

    # ── forks ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def fork(self) -> Fork | None:
        """The entry that this session continues, if it is a fork."""
        self._look_at_start()
        return self._fork

    @property
    def first(self) -> str:
        """The id of the first entry, which is unique, unlike the id of the session."""
        self._look_at_start()
        return self._first or self.id

    @property
    def root(self) -> str:
        """The id of the first entry of the oldest session that this one was forked from, as far as it can be read."""
        if self.fork is None:
            return self.first
        try:
            return self._above().root
        except NotFound:
            return self.fork.base

    def _look_at_start(self) -> None:
        if not self._has_start and self.state.start:
            self._first = self.state.start.get("id")
            if "fork" in self.state.start:
                self._fork = msgspec.convert(self.state.start["fork"], Fork)
            self._has_start = True
        if not self._has_start:
            first = next((item for item in self.log.read() if isinstance(item, Entry)), None)
            if isinstance(first, Start):
                self._fork, self._first = first.fork, first.id
            self._has_start = True

    @property
    def inherited_to(self) -> int:
        """Entries up to this `seq` are in the logs above."""
        return self.fork.seq if self.fork is not None else 0

    def owner_of(self, seq: int) -> History:
        """The history (this or an ancestor) whose own log holds `seq`."""
        return self._above().owner_of(seq) if seq <= self.inherited_to else self

    def _above(self) -> History:
        if self._parent is None:
            assert self.fork is not None
            self._parent = History(self.store, self.store.open(self.fork.session, read_only=True, first=self.fork.base))
        return self._parent

    def close(self) -> None:
        """Close this log and the logs it was forked from. The state stays; anything else raises `Invalid`."""
        self.is_closed = True
        self._recent = []
        self._opened[1].close()
        if self._parent is not None:
            self._parent.close()

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def get(self, seq: int) -> AnyEntry:
        """The entry with that `seq`. Raises `NotFound`."""
        entry = self.at(seq)
        if entry is None:
            raise NotFound(f"no entry {seq} in session {self.id}", hint="`turnlog log` shows what there is")
        return entry

    def at(self, seq: int) -> AnyEntry | None:
        """The entry with that `seq`."""
        if seq < 1:
            return None
        recent = self._recent
        if recent and seq >= recent[0].seq:
            index = bisect_left(recent, seq, key=_seq)
            entry = recent[index] if index < len(recent) else None
            return entry if entry is not None and entry.seq == seq else None
        if seq <= self.inherited_to:
            return self._above().at(seq)
        for item in self.log.read(after=seq - 1, before=seq + 1):
            if isinstance(item, Entry):
                return item
        return None

    def forward(self, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
        """Entries with `after < seq < before`, oldest first, without repeats.

        A node that was appended after a repeat has the original as its parent.
        """
        originals: dict[int, int] = {}
        for entry in self.lines(after, before):
            parent = entry.parent
            if entry.again and self.is_repeat(entry):
                originals[entry.seq] = self.original(entry.again)
            elif not parent or not (parent <= after or originals):
                yield entry
            else:
                original = self.original(parent) if parent <= after else originals.get(parent, parent)
                yield entry if original == parent else replace(entry, parent=original)

    def lines(self, after: int = 0, before: int | None = None) -> Iterator[AnyEntry]:
        """Entries with `after < seq < before` as they are in the logs, repeats included, oldest first."""
        limit = self.inherited_to
        if after < limit:
            yield from self._above().lines(after, limit + 1 if before is None else min(before, limit + 1))
        if before is None or before > limit + 1:
            for item in self.log.read(after=max(after, limit), before=before):
                if isinstance(item, Entry):
                    yield item

    def back(self, start: int | None = None) -> Iterator[AnyEntry]:
        """Entries up to `start`, newest first, without repeats. A parent may be a repeat: see `original`."""
        for entry in self._lines_back(start):
            if not entry.again or not self.is_repeat(entry):
                yield entry

    def _lines_back(self, start: int | None) -> Iterator[AnyEntry]:
        recent = self._recent
        before: int | None = None if start is None else start + 1
        for index in range(len(recent) - 1, -1, -1):
            entry = recent[index]
            if start is None or entry.seq <= start:
                yield entry
        if recent and (before is None or recent[0].seq < before):
            before = recent[0].seq
        limit = self.inherited_to
        if before is None or before > limit + 1:
            for item in self.log.read(before=before, reverse=True):
                if isinstance(item, Entry):
                    yield item
        if limit:
            yield from self._above()._lines_back(limit if before is None else min(limit, before - 1))

    def remembered(self) -> Iterator[AnyEntry]:
        """The newest entries, newest first, as far as they are in memory."""
        return reversed(self._recent)

    def refuse_inherited(self, ids: Collection[str]) -> None:
        """Raise `AlreadyExists` if one of these ids is among the inherited entries."""
        limit = self.inherited_to
        for entry in self.lines(0, limit + 1) if limit else ():
            if entry.id in ids:
                raise AlreadyExists(f"the entry id {entry.id!r} is already in session {self.id}, inherited")

    def path(self, head: int) -> Iterator[AnyEntry]:
        """The nodes from `head` back to the beginning.

        A node that cannot be read is replaced by the one before it in the log.
        """
        wanted = head
        source = self._lines_back(wanted)
        while wanted > 0:
            entry = next(source, None)
            if entry is None:
                return
            if entry.seq > wanted or entry.parent is None:
                continue
            if entry.again and self.is_repeat(entry):
                wanted = entry.again
                continue
            yield entry
            wanted = entry.parent
            if entry.seq - wanted > _FAR:
                source = self._lines_back(wanted)


def refuse_newer(session_id: str, version: int) -> None:
    """Raise `Unsupported` for a log in a later version of the format, which would be misread."""
    if version > FORMAT:
        raise Unsupported(
            f"session {session_id} is in format {version}; this Turnlog knows format {FORMAT}",
            hint="a newer Turnlog wrote it: upgrade this one",
        )


def _seq(entry: AnyEntry) -> int:
    return entry.seq


def loaded(store: Store, log: Log) -> History:
    """The history of an open log, with its state loaded. If that fails, the log is closed."""
    history = History(store, log)
    try:
        history.load()
    except BaseException:
        history.close()
        raise
    return history


@contextmanager
def opened(store: Store, log: Log) -> Generator[History]:
    """The loaded history of a log, as a context manager. Leaving it closes the log."""
    with closing(loaded(store, log)) as history:
        yield history


def subagents(store: Store, history: History) -> Iterator[History]:
    """The histories of the subagents of a session and of their subagents, each once; missing ones are left out."""
    seen = {history.id}
    waiting = list(history.state.children)
    for name in waiting:  # grows during the iteration
        if name in seen:
            continue
        seen.add(name)
        try:
            log = store.open(name, read_only=True)
        except NotFound:
            continue
        with opened(store, log) as child:
            waiting += child.state.children
            yield child
