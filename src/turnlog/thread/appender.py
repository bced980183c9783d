"""How entries get into a log, and what the session knows of it afterwards."""

from __future__ import annotations

import os
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from typing import Any
from weakref import WeakSet

from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound, TurnlogError, TurnlogWarning
from turnlog.log.draft import Draft, prepare
from turnlog.log.entry import FIXED, WIDE_FACTS, AnyEntry, Entry, Set, Writer, is_fence
from turnlog.log.fold import State, to_fold
from turnlog.log.ids import process, word_of
from turnlog.log.secret import mask
from turnlog.machine.folder import workspace_path
from turnlog.machine.process import this_process
from turnlog.store import Log, Store, derived
from turnlog.thread.history import History, opened
from turnlog.version import __version__

_FOLD_BYTES = 128 << 10
_FOLD_ENTRIES = 250
_FOLD_RESUMED = 2 << 10
"""So many bytes are assumed for each entry that was there before us."""
_FOLD_SHARE = 16
"""A fold is written when at least so many times its own size has been appended since the last."""
_id = attrgetter("id")


class Appender:
    """Appends to one log and keeps its history in step. The mutex of the history guards both."""

    def __init__(self, store: Store, history: History) -> None:
        self.history = history
        self.turn: str | None = None
        self.is_guest = False
        """Whether this process only tells what another one does, so that nobody need know of it."""
        self._store = store
        self._log = history.log
        self._seen = history.state.seq
        """The last entry our caller knows of: a node after it that is not ours is a conflict."""
        self._has_news = False
        """Whether there is such a node: then `_seen` stays where it is until `refresh`."""
        self._is_stale = False
        """Whether something was interrupted: then we do not know what is in the log, nor whether the state is whole."""
        self._tried: set[str] = set()
        """Ids of entries that may be in the log although nobody was told so: they are ours, and no news."""
        # Who resumes for every turn has to write folds as well, or each resume would take longer than the last.
        self._bytes_since_fold = history.since_fold * _FOLD_RESUMED
        self._entries_since_fold = history.since_fold
        self._fold_at = _FOLD_BYTES
        _appenders.add(self)

    def after_fork(self) -> None:
        """In a child process: another thread of the parent may have been in the middle of something."""
        self._is_stale = True

    @property
    def state(self) -> State:
        """What is known, looked up anew if the last append failed: then we do not know what is in the log."""
        if self._is_stale:
            with self.history.mutex:
                if self._is_stale:
                    self._recover()
        return self.history.state

    def _recover(self) -> None:
        """What an interrupted append left in the log is ours: no news to our caller."""
        self.history.load()
        self._seen = min(self._seen, self.history.state.seq)
        seen = self._seen
        for item in self._log.read(after=seen):
            if isinstance(item, Entry):
                if is_fence(item) and item.id not in self._tried:
                    self._has_news = True
                if self._has_news:
                    break
                seen = item.seq
        self._seen, self._tried, self._is_stale = seen, set(), False

    def refresh(self) -> None:
        """Take in what other processes have written since; our caller knows it now."""
        with self.history.mutex:
            self.history.refuse_closed()
            try:
                self.history.load()
            except BaseException:
                self._is_stale = True
                raise
            self._seen, self._tried = self.history.state.seq, set()
            self._has_news = self._is_stale = False

    def catch_up(self) -> None:
        """Take in what others have written, but let their nodes be news to our caller."""
        with self.history.mutex:
            self.history.refuse_closed()
            _ = self.state  # looked up anew if need be
            try:
                self._saw(self.history.catch_up())
            except BaseException:
                self._is_stale = True
                raise

    def refuse_news(self) -> None:
        """Raise the conflict that the next node or head would raise."""
        if self._has_news:
            raise self._conflict()

    def append(
        self,
        entries: Sequence[Entry],
        *,
        head: int | None = None,
        rebase: bool = False,
        once: bool = False,
        alone: bool = False,
    ) -> list[Any]:
        """One batch, durable when this returns. `head` is the one the caller expects."""
        if self.history.is_closed:
            self.history.refuse_closed()
        drafts: list[Draft] = []
        blobs: dict[str, bytes] = {}
        size, is_referring = 0, False
        for entry in entries:
            if self.turn is not None and entry.turn is None:
                entry = replace(entry, turn=self.turn)
            if isinstance(entry, Set):
                entry = _masked(entry)
            draft, new = prepare(entry)
            blobs.update(new)
            is_referring = is_referring or bool(draft.blobs)
            drafts.append(draft)
            size += len(draft.body)
        if len(drafts) > 1 and len({draft.id for draft in drafts}) < len(drafts):
            raise Invalid("two drafts of one batch have the same id")
        if is_referring:
            with self._store.keeping():
                self._keep(drafts, blobs)
                done = self._take_turn(drafts, size, head, rebase, once, alone)
        else:
            done = self._take_turn(drafts, size, head, rebase, once, alone)
        try:
            self._log.sync(done[-1].seq)
        except BaseException:
            self._is_stale = True
            raise
        if self._bytes_since_fold > self._fold_at or self._entries_since_fold > _FOLD_ENTRIES:
            self._write_fold()
        for entry in done:
            if entry.blobs:
                return [self.history.whole(entry) for entry in done]
        return done

    def set(self, entry: Set) -> Set:
        """Append a fact. A session-wide one says all of them: it is made anew where somebody else changed one."""
        if entry.key == "workspace" and entry.value is not None:
            entry = replace(entry, value=workspace_path(entry.value))
        while entry.key in WIDE_FACTS:
            facts = {**self.state.wide, entry.key: entry.value}
            if entry.unset:
                del facts[entry.key]
            try:
                return self.append([replace(entry, all=facts)], alone=True)[0]
            except Conflict:
                self.catch_up()
        return self.append([entry])[0]

    def _keep(self, drafts: list[Draft], blobs: dict[str, bytes]) -> None:
        """What an entry refers to is there, and durable, before the entry is."""
        for digest in {digest for draft in drafts for digest in draft.blobs}:
            if digest not in blobs and not self._store.has(digest):
                raise NotFound(f"no blob {digest}", hint="put it there first with home.put_blob")
        if blobs:
            derived.put(self._store, blobs)

    def _take_turn(
        self, drafts: list[Draft], size: int, head: int | None, rebase: bool, once: bool, alone: bool
    ) -> list[AnyEntry]:
        """One thread after the other: into the log, and into what is known."""
        with self.history.mutex:
            if head is not None and head != self.state.head:
                raise Conflict(f"the head is entry {self.state.head}, not {head}", hint="look at what came after")
            while True:
                try:
                    done = self._into_log(drafts, once, alone)
                except Conflict:
                    if alone:
                        raise
                    if not rebase:
                        raise self._conflict() from None
                    self.refresh()
                else:
                    self._bytes_since_fold += size
                    self._entries_since_fold += len(drafts)
                    return done

    def _into_log(self, drafts: list[Draft], once: bool, alone: bool) -> list[AnyEntry]:
        if self._is_stale:
            self._recover()
        state = self.history.state
        if state.critical:
            self.history.understand()
        try:
            self._tried.update(map(_id, drafts))
            if process.word not in state.writers and not self.is_guest:
                self._introduce(drafts[0].at)
            after = state.seq if alone else self._seen
            done = self._log.append(drafts, after=after, head=state.head, once=once, alone=alone)
            self._absorb(done)
        except (Conflict, AlreadyExists):
            raise  # nothing was written
        except BaseException:
            # Also where a signal's exception came up: what is in the log and what we know of it may differ now.
            self._is_stale = True
            raise
        self._tried = set()
        return done

    def _introduce(self, at: int | None) -> None:
        """The first thing a process appends says who it is; at the time of what follows, if that is of long ago."""
        draft, _ = prepare(Writer(word=process.word, version=__version__, **this_process()))
        self._absorb(self._log.append([replace(draft, at=at)], after=self._seen, head=0))

    def _absorb(self, done: list[AnyEntry]) -> None:
        """Fold what we appended, and what others put before it. Their nodes stay unseen until `refresh`."""
        state = self.history.state
        first = done[0].seq
        if first <= state.seq:
            return
        if first > state.seq + 1:
            items = self._log.read(after=state.seq, before=first)
            between = [item for item in items if isinstance(item, Entry)]
            self.history.take(between + done)
            self._saw(between)
        else:
            self.history.take(done)
            if not self._has_news:
                self._seen = state.seq

    def _saw(self, theirs: list[AnyEntry]) -> None:
        """Others wrote these before what we know now."""
        self._has_news = self._has_news or any(is_fence(entry) for entry in theirs)
        if not self._has_news:
            self._seen = self.history.state.seq

    def _conflict(self) -> Conflict:
        """The conflict with the other writer's name in it."""
        writers = dict(self.history.state.writers)
        for item in self._log.read(after=self._seen):
            if isinstance(item, Writer):
                writers[item.word] = {"pid": item.pid, "host": item.host}
            elif isinstance(item, Entry) and is_fence(item):
                who = writers.get(word_of(item.id))
                name = f"process {who['pid']} on {who['host']}" if who else "another writer"
                return Conflict(
                    f"entry {item.seq} ({item.type}) was written by {name} after entry {self._seen}",
                    hint="call refresh() on the session and append again, or append with rebase=True",
                )
        return Conflict(
            f"the log of session {self.history.id} changed under this writer",
            hint="call refresh() on the session, or resume it again",
        )

    def _write_fold(self) -> None:
        with self.history.mutex:
            # Nothing happens by it: it has the time of what it is about, and a listing shows no other.
            draft, blobs = prepare(replace(to_fold(self.state), at=self.state.last_at))
            size = len(draft.body) + sum(len(data) for data in blobs.values())
            self._fold_at = max(_FOLD_BYTES, _FOLD_SHARE * size)
            if self._bytes_since_fold <= self._fold_at and self._entries_since_fold <= _FOLD_ENTRIES:
                return
            self._bytes_since_fold = self._entries_since_fold = 0
            try:
                with self._store.keeping() if blobs else nullcontext():
                    if blobs:
                        derived.put(self._store, blobs)
                    self._absorb(self._log.append([draft], after=self._seen, head=0))
            except BaseException as error:
                self._is_stale = True
                if not isinstance(error, TurnlogError):
                    raise
                # A fold only saves time later; the caller's entry is safe and must not seem to fail.


def check_fact(entry: Set) -> None:
    """Refuse a fact without a name, or with that of something that is said once and stays."""
    if not isinstance(entry.key, str) or not entry.key:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Invalid(f"a fact needs a name, not {entry.key!r:.80}")
    if entry.key in FIXED and not entry.unset:
        hint = f"give it to home.create, or choose another name, such as my_{entry.key}"
        raise Invalid(f"{entry.key!r} is no fact: it is said when a session is made, and stays", hint=hint)


def _masked(entry: Set) -> Set:
    try:
        value, where = mask(entry.key, entry.value)
        facts, more = mask("", entry.all) if entry.all else (entry.all, [])
    except RecursionError:
        raise Invalid(f"the fact {entry.key!r:.80} is nested too deep") from None
    if where or more:
        names = ", ".join(where or more)
        warnings.warn(f"a secret was left out of a fact: {names}", TurnlogWarning, stacklevel=4)
        return replace(entry, value=value, all=facts)
    return entry


@contextmanager
def appending(store: Store, log: Log) -> Generator[Appender]:
    """What appends to a log, until this is left: then the log is closed."""
    with opened(store, log) as history:
        yield Appender(store, history)


def turns_here() -> set[str]:
    """The turns that sessions of this process are in right now."""
    return {appender.turn for appender in list(_appenders) if appender.turn is not None}


def _renew_all() -> None:
    for appender in list(_appenders):
        appender.after_fork()


_appenders: WeakSet[Appender] = WeakSet()
os.register_at_fork(after_in_child=_renew_all)
