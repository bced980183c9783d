"""Appending entries to a log, and keeping the session's state in step with it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Conflict, Invalid, TurnlogError
from turnlog.log.draft import Draft, prepare
from turnlog.log.entry import AnyEntry, Entry, Fold, Head, Set, Start, Writer, is_fence, is_wide
from turnlog.log.fold import State, to_fold
from turnlog.log.ids import process, word_of
from turnlog.machine.liveobjects import LiveObjects
from turnlog.machine.process import this_process
from turnlog.store import Log, Store, derived
from turnlog.store.forked import renew_after_fork
from turnlog.thread.batch import keep_blobs, refuse_equal_ids
from turnlog.thread.fact import check_fact, masked, normalized, with_all
from turnlog.thread.history import History, opened
from turnlog.version import __version__

_FOLD_BYTES = 128 << 10
_FOLD_ENTRIES = 250
_FOLD_RESUMED = 2 << 10
"""The bytes that are assumed for each entry that was in the log before this process opened it."""
_FOLD_SHARE = 16
"""A fold is written when at least this many times its own size has been appended since the last fold."""
_id, _seq = attrgetter("id"), attrgetter("seq")


class AppendCondition(Struct, frozen=True, gc=False):
    """What must hold for a batch to be appended, and where it goes."""

    head: int | None
    """The head that the caller expects."""
    rebase: bool
    """Whether it follows what other writers appended, instead of a conflict."""
    once: bool
    """Whether a draft that is in the log already is refused."""
    alone: bool
    """Whether any entry of another writer is a conflict, and not only a node."""
    base: int | None
    """The parent of its first node, if not the head."""


class Appender:
    """Appends to one log and keeps its history in step. The mutex of the history guards both."""

    def __init__(self, store: Store, history: History) -> None:
        self.history = history
        self.turn: str | None = None
        self.writes_no_writer_entry = False
        """True for hooks: they append for another process and write no `writer` entry."""
        self._store = store
        self._log = history.log
        self._seen = history.state.seq
        """The last entry that the caller knows of. A later node of another writer is a conflict."""
        self._has_foreign_nodes = False
        """Whether another writer appended such a node: then `_seen` does not move until `refresh`."""
        self._is_stale = False
        """Whether an operation was interrupted: then neither the content of the log nor the state is certain."""
        self._unacknowledged_ids: set[str] = set()
        """Ids of entries whose append was not acknowledged. If they are in the log, they are ours."""
        # A program that resumes for every turn must write folds too, or each resume would take longer than the last.
        self._bytes_since_fold = history.since_fold * _FOLD_RESUMED
        self._entries_since_fold = history.since_fold
        self._fold_at = _FOLD_BYTES
        _appenders.add(self)
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Mark the state as stale in a child process: another thread of the parent may have been changing it."""
        self._is_stale = True

    @property
    def state(self) -> State:
        """The current state, loaded again if the last append was interrupted: then the log's content is not certain."""
        if self._is_stale:
            with self.history.mutex:
                if self._is_stale:
                    self._recover()
        return self.history.state

    def _recover(self) -> None:
        """Load the log after an interrupted append. Entries of that append are ours, and the caller knows of them."""
        self.history.load()
        self._seen = min(self._seen, self.history.state.seq)
        seen = self._seen
        for item in self._log.read(after=seen):
            if isinstance(item, Entry):
                if is_fence(item) and item.id not in self._unacknowledged_ids:
                    self._has_foreign_nodes = True
                if self._has_foreign_nodes:
                    break
                seen = item.seq
        self._seen, self._unacknowledged_ids, self._is_stale = seen, set(), False

    def refresh(self) -> None:
        """Load what other processes have written since. After this the caller knows of it."""
        with self.history.mutex:
            self.history.refuse_closed()
            try:
                if self._is_stale or self._log.wait(self.history.state.seq):
                    self.history.load()
                else:
                    self.history.renew()
            except BaseException:
                self._is_stale = True
                raise
            self._seen, self._unacknowledged_ids = self.history.state.seq, set()
            self._has_foreign_nodes = self._is_stale = False

    def catch_up(self) -> None:
        """Load what other writers have written. The caller does not know of their nodes until `refresh`."""
        with self.history.mutex:
            self.history.refuse_closed()
            _ = self.state  # loads the log again if the state is stale
            try:
                self._note_foreign(self.history.catch_up())
            except BaseException:
                self._is_stale = True
                raise

    def refuse_foreign_nodes(self) -> None:
        """Raise the conflict that the next node or head would raise, if another writer appended one."""
        if self._has_foreign_nodes:
            raise self._conflict()

    def refuse_other_head(self, head: int) -> None:
        """Raise `Conflict` if the head is not the one that the caller expects."""
        now, original = self.state.head, self.history.original
        if head != now and original(head) != original(now):
            hint = "look at what came after"
            raise Conflict(f"the head is entry {now}, not {head}", hint=hint, head=now, expected=head)

    def append(
        self,
        entries: Sequence[Entry],
        *,
        head: int | None = None,
        rebase: bool = False,
        once: bool = False,
        alone: bool = False,
        base: int | None = None,
        is_masked: bool = False,
    ) -> list[Any]:
        """Append a batch; it is durable when this returns. Its facts are masked, unless they are masked already."""
        if self.history.is_closed:
            self.history.refuse_closed()
        condition = AppendCondition(head, rebase, once, alone, base)
        drafts: list[Draft] = []
        blobs: dict[str, bytes] = {}
        size, is_referring = 0, False
        for entry in entries:
            if self.turn is not None and entry.turn is None:
                entry = replace(entry, turn=self.turn)
            if isinstance(entry, Set) and not is_masked:
                entry = masked(entry)
            draft, new = prepare(entry)
            blobs.update(new)
            is_referring = is_referring or bool(draft.blobs)
            drafts.append(draft)
            size += len(draft.body)
        if len(drafts) > 1:
            refuse_equal_ids(drafts)
        if is_referring:
            with self._store.keeping():
                keep_blobs(self._store, drafts, blobs)
                appended = self._append_guarded(drafts, size, condition)
        else:
            appended = self._append_guarded(drafts, size, condition)
        try:
            self._log.sync(appended[-1].seq if len(appended) == 1 else max(map(_seq, appended)))
        except BaseException:
            self._is_stale = True
            raise
        if self._bytes_since_fold > self._fold_at or self._entries_since_fold > _FOLD_ENTRIES:
            self._write_fold()
        for entry in appended:
            if entry.blobs:
                return [self.history.whole(entry) for entry in appended]
        return appended

    def set(self, entry: Set) -> Set:
        """Append a fact. A session-wide one carries all of them: it is built again if another writer changed one."""
        return self.append_batch([entry])[0]

    def append_batch(
        self,
        entries: Sequence[Entry],
        *,
        head: int | None = None,
        rebase: bool = False,
        once: bool = False,
        alone: bool = False,
        to: int | None = None,
    ) -> list[Any]:
        """Append a batch that may move the head to node `to` first, or set session-wide facts.

        Each session-wide fact carries all of them, so the batch is built again if another writer changed one.
        """
        entries = normalized(entries)
        is_wide_batch = any(map(is_wide, entries))
        if alone or is_wide_batch:  # what others wrote before our `writer` entry counts, too
            self._ensure_writer_entry(alone)
        if to is None and not is_wide_batch:
            return self.append(entries, head=head, rebase=rebase, once=once, alone=alone, is_masked=True)
        moves = to is not None or any(entry.is_node for entry in entries)
        while True:
            with self._store.keeping(), self.history.mutex:  # the order of the locks: see `Session`
                if moves and self._has_foreign_nodes:
                    if not rebase:
                        raise self._conflict()
                    self.refresh()
                base, prepared = None, with_all(entries, self.state.wide)
                if to is not None and to != self.state.head:
                    present = [one for entry in entries if (one := derived.find(self._log, entry.id)) is not None]
                    if len(present) == len(prepared) and not once:
                        return list(map(self.history.whole, present))
                    from turnlog.thread.target import move_to  # hooks never need it, and must start fast

                    prepared.insert(0, replace(move_to(self.history, to), id=f"{entries[0].id}/to"))
                    base = to
                try:
                    is_alone = alone or is_wide_batch
                    appended = self.append(prepared, head=head, once=once, alone=is_alone, base=base, is_masked=True)
                    return appended[-len(entries) :]
                except Conflict:
                    if alone or (head is not None and head != self.state.head):
                        raise
                    self.catch_up()

    def _append_guarded(self, drafts: list[Draft], size: int, condition: AppendCondition) -> list[AnyEntry]:
        """Append to the log and fold into the state, one thread at a time."""
        with self.history.mutex:
            if condition.head is not None:
                self.refuse_other_head(condition.head)
            while True:
                try:
                    appended = self._append_to_log(drafts, condition)
                except Conflict:
                    if condition.alone or not condition.rebase:
                        raise self._conflict(alone=condition.alone) from None
                    self.refresh()
                else:
                    self._bytes_since_fold += size
                    self._entries_since_fold += len(drafts)
                    return appended

    def _append_to_log(self, drafts: list[Draft], condition: AppendCondition) -> list[AnyEntry]:
        if self._is_stale:
            self._recover()
        state = self.history.state
        if state.critical:
            self.history.refuse_critical()
        try:
            self._unacknowledged_ids.update(map(_id, drafts))
            if process.word not in state.writers and not self.writes_no_writer_entry:
                self._append_writer_entry(drafts[0].at)
            after = state.seq if condition.alone else self._seen
            head = state.head if condition.base is None else condition.base
            appended = self._log.append(drafts, after=after, head=head, once=condition.once, alone=condition.alone)
            self._absorb(appended)
        except (Conflict, AlreadyExists):
            raise  # nothing was written
        except BaseException:
            # An exception from a signal handler also ends here: the log and our state may differ now.
            self._is_stale = True
            raise
        self._unacknowledged_ids = set()
        return appended

    def _ensure_writer_entry(self, alone: bool) -> None:
        with self.history.mutex:
            state = self.state
            seq, is_new = state.seq, process.word not in state.writers and not self.writes_no_writer_entry
            if is_new:
                self._append_writer_entry(None)
            if alone and (self._has_foreign_nodes or state.seq > seq + is_new):
                raise self._conflict()

    def _append_writer_entry(self, at: int | None) -> None:
        """Append the `writer` entry of this process; `at` is the time of the entry that follows, if it has one."""
        draft, _ = prepare(Writer(word=process.word, version=__version__, **this_process()))
        self._absorb(self._log.append([replace(draft, at=at)], after=self._seen, head=0))

    def _absorb(self, appended: list[AnyEntry]) -> None:
        """Fold what we appended and what others appended before it."""
        state = self.history.state
        first = appended[0].seq
        if first == state.seq + 1 and appended[-1].seq == state.seq + len(appended):
            self.history.take(appended)
            if not self._has_foreign_nodes:
                self._seen = state.seq
            return
        new = {entry.seq for entry in appended if entry.seq > state.seq}
        if new:
            items = self._log.read(after=state.seq, before=max(new) + 1)
            entries = [item for item in items if isinstance(item, Entry)]
            self.history.take(entries)
            self._note_foreign([entry for entry in entries if entry.seq not in new])

    def _note_foreign(self, entries: list[AnyEntry]) -> None:
        """Note entries of other writers that have just been folded."""
        self._has_foreign_nodes = self._has_foreign_nodes or any(is_fence(entry) for entry in entries)
        if not self._has_foreign_nodes:
            self._seen = self.history.state.seq

    def _conflict(self, *, alone: bool = False) -> Conflict:
        """The conflict error, with the other writer in it."""
        writers = dict(self.history.state.writers)
        first: Entry | None = None
        head, name = self.history.state.head, None
        seen = self.history.state.seq if alone else self._seen
        for item in self._log.read(after=seen):
            if isinstance(item, Writer):
                writers[item.word] = {"pid": item.pid, "host": item.host}
            elif isinstance(item, Entry) and (alone or is_fence(item)):
                head = item.to if isinstance(item, Head) else item.seq if is_fence(item) else head
                if first is None:
                    first, who = item, writers.get(word_of(item.id))
                    name = f"process {who['pid']} on {who['host']}" if who else None
        if first is not None:
            return Conflict(
                f"entry {first.seq} ({first.type}) was written by {name or 'another writer'} after entry {seen}",
                hint="call refresh() on the session and append again, or append with rebase=True",
                head=head, by=name, expected=seen,
            )  # fmt: skip
        return Conflict(
            f"the log of session {self.history.id} changed under this writer",
            hint="call refresh() on the session, or resume it again",
        )

    def _write_fold(self) -> None:
        """Write a fold if one is due. A store error is no failure of the caller's append, which is already durable."""
        with self.history.mutex:
            try:
                self._fold_if_due()
            except BaseException as error:
                self._is_stale = True
                if not isinstance(error, TurnlogError):
                    raise

    def _fold_if_due(self) -> None:
        self.history.renew()  # what was erased since must not come back with the fold
        if self.state.calls is None:
            from turnlog.thread.call.pending import open_calls  # after a rewind, or in an earlier version's log

            open_calls(self.history)
        # A fold is no activity: it has the time of the last entry, so that a listing shows no other.
        draft, blobs = prepare(replace(to_fold(self.state), at=self.state.last_at))
        self._fold_at = max(_FOLD_BYTES, _FOLD_SHARE * (len(draft.body) + sum(map(len, blobs.values()))))
        if self._bytes_since_fold <= self._fold_at and self._entries_since_fold <= _FOLD_ENTRIES:
            return
        self._bytes_since_fold = self._entries_since_fold = 0
        with self._store.keeping() if blobs else nullcontext():
            if blobs:
                derived.put(self._store, blobs)
            self._absorb(self._log.append([draft], after=self._seen, head=0))


def batch_of(drafts: Sequence[AnyEntry], id: str | None) -> list[AnyEntry]:
    """The drafts that a caller passed, checked, with ids made from `id` if it is given."""
    if not drafts:
        raise Invalid("nothing to append")
    for draft in drafts:
        if not isinstance(draft, Entry):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"{draft!r:.80} is not an entry", hint="use turnlog.Message and the like")
        if isinstance(draft, Set):
            check_fact(draft)
        elif isinstance(draft, (Start, Fold)):
            raise Invalid(f"a {draft.type} entry is not appended by callers: the log has its own", hint="leave it out")
    if id is None:
        return list(drafts)
    return [replace(draft, id=id if not index else f"{id}/{index}") for index, draft in enumerate(drafts)]


@contextmanager
def appending(store: Store, log: Log) -> Generator[Appender]:
    """An appender for a log, as a context manager. Leaving it closes the log."""
    with opened(store, log) as history:
        yield Appender(store, history)


def turns_here() -> set[str]:
    """The turns that sessions of this process are in right now."""
    return {appender.turn for appender in _appenders if appender.turn is not None}


_appenders: LiveObjects[Appender] = LiveObjects()
