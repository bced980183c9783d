"""How entries get into a log, and what the session knows of it afterwards."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from operator import attrgetter
from typing import Any
from weakref import WeakSet

from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound, TurnlogError
from turnlog.log.draft import Draft, prepare
from turnlog.log.entry import AnyEntry, Entry, Head, Set, Writer, is_fence, is_wide
from turnlog.log.fold import State, to_fold
from turnlog.log.ids import process, word_of
from turnlog.machine.folder import workspace_path
from turnlog.machine.process import this_process
from turnlog.store import Log, Store, derived
from turnlog.store.forked import renew_after_fork
from turnlog.thread.fact import check_fact, masked, with_all
from turnlog.thread.history import History, opened
from turnlog.version import __version__

_FOLD_BYTES = 128 << 10
_FOLD_ENTRIES = 250
_FOLD_RESUMED = 2 << 10
"""So many bytes are assumed for each entry that was there before us."""
_FOLD_SHARE = 16
"""A fold is written when at least so many times its own size has been appended since the last."""
_id, _seq = attrgetter("id"), attrgetter("seq")


class Appender:
    """Appends to one log and keeps its history in step. The mutex of the history guards both."""

    def __init__(self, store: Store, history: History) -> None:
        self.history = history
        self.turn: str | None = None
        self.is_guest = False
        """True for hooks: they append for another process and write no `writer` entry."""
        self._store = store
        self._log = history.log
        self._seen = history.state.seq
        """The last entry our caller knows of: a node after it that is not ours is a conflict."""
        self._has_news = False
        """Whether there is such a node: then `_seen` stays where it is until `refresh`."""
        self._is_stale = False
        """Whether something was interrupted: then we do not know what is in the log, nor whether the state is whole."""
        self._tried: set[str] = set()
        """Ids of entries whose append was not acknowledged but may be in the log: ours, not another writer's."""
        # A program that resumes for every turn must write folds too, or each resume would take longer than the last.
        self._bytes_since_fold = history.since_fold * _FOLD_RESUMED
        self._entries_since_fold = history.since_fold
        self._fold_at = _FOLD_BYTES
        _appenders.add(self)
        renew_after_fork(self)

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
                if self._is_stale or self._log.wait(self.history.state.seq):
                    self.history.load()
                else:
                    self.history.renew()
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

    def refuse_other_head(self, head: int) -> None:
        """Raise the conflict of a caller who expects that head and has not seen what came after."""
        if head != self.state.head:
            now = self.state.head
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
    ) -> list[Any]:
        """One batch, durable when this returns. `head` is the one the caller expects; the first node hangs on `base`.

        Without a base that is the head.
        """
        if self.history.is_closed:
            self.history.refuse_closed()
        drafts: list[Draft] = []
        blobs: dict[str, bytes] = {}
        size, is_referring = 0, False
        for entry in entries:
            if self.turn is not None and entry.turn is None:
                entry = replace(entry, turn=self.turn)
            if isinstance(entry, Set):
                entry = masked(entry)
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
                appended = self._take_turn(drafts, size, head, rebase, once, alone, base)
        else:
            appended = self._take_turn(drafts, size, head, rebase, once, alone, base)
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
        """Append a fact. A session-wide one says all of them: it is made anew where somebody else changed one."""
        if entry.key == "workspace" and entry.value is not None:
            entry = replace(entry, value=workspace_path(entry.value))
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
        """The same for a batch that moves the head to node `to` first, or has facts of the whole session in it.

        Those say all of them: it is made anew where somebody else changed one.
        """
        is_wide_batch = any(map(is_wide, entries))
        if alone or is_wide_batch:  # what others wrote before we are introduced is news as well
            self._be_introduced(alone)
        if to is None and not is_wide_batch:
            return self.append(entries, head=head, rebase=rebase, once=once, alone=alone)
        moves = to is not None or any(entry.is_node for entry in entries)
        while True:
            with self._store.keeping(), self.history.mutex:  # in this order: see `Session`
                if moves and self._has_news:
                    if not rebase:
                        raise self._conflict()
                    self.refresh()
                base, prepared = None, with_all(entries, self.state.wide)
                if to is not None and to != self.state.head:
                    present = [one for entry in entries if (one := derived.find(self._log, entry.id)) is not None]
                    if len(present) == len(prepared) and not once:
                        return list(map(self.history.whole, present))
                    from turnlog.thread.target import move_to  # a hook never moves, and would wait for it

                    prepared.insert(0, replace(move_to(self.history, to), id=f"{entries[0].id}/to"))
                    base = to
                try:
                    appended = self.append(prepared, head=head, once=once, alone=alone or is_wide_batch, base=base)
                    return appended[-len(entries) :]
                except Conflict:
                    if alone or (head is not None and head != self.state.head):
                        raise
                    self.catch_up()

    def _keep(self, drafts: list[Draft], blobs: dict[str, bytes]) -> None:
        """What an entry refers to is there, and durable, before the entry is."""
        for digest in {digest for draft in drafts for digest in draft.blobs}:
            if digest not in blobs and not self._store.has(digest):
                raise NotFound(f"no blob {digest}", hint="put it there first with home.put_blob")
        if blobs:
            derived.put(self._store, blobs)

    def _take_turn(
        self,
        drafts: list[Draft],
        size: int,
        head: int | None,
        rebase: bool,
        once: bool,
        alone: bool,
        base: int | None,
    ) -> list[AnyEntry]:
        """One thread after the other: into the log, and into what is known."""
        with self.history.mutex:
            if head is not None:
                self.refuse_other_head(head)
            while True:
                try:
                    appended = self._into_log(drafts, once, alone, base)
                except Conflict:
                    if alone or not rebase:
                        raise self._conflict(alone=alone) from None
                    self.refresh()
                else:
                    self._bytes_since_fold += size
                    self._entries_since_fold += len(drafts)
                    return appended

    def _into_log(self, drafts: list[Draft], once: bool, alone: bool, base: int | None) -> list[AnyEntry]:
        if self._is_stale:
            self._recover()
        state = self.history.state
        if state.critical:
            self.history.refuse_critical()
        try:
            self._tried.update(map(_id, drafts))
            if process.word not in state.writers and not self.is_guest:
                self._introduce(drafts[0].at)
            after = state.seq if alone else self._seen
            head = state.head if base is None else base
            appended = self._log.append(drafts, after=after, head=head, once=once, alone=alone)
            self._absorb(appended)
        except (Conflict, AlreadyExists):
            raise  # nothing was written
        except BaseException:
            # Also where a signal's exception came up: what is in the log and what we know of it may differ now.
            self._is_stale = True
            raise
        self._tried = set()
        return appended

    def _be_introduced(self, alone: bool) -> None:
        with self.history.mutex:
            state = self.state
            seq, is_new = state.seq, process.word not in state.writers and not self.is_guest
            if is_new:
                self._introduce(None)
            if alone and (self._has_news or state.seq > seq + is_new):
                raise self._conflict()

    def _introduce(self, at: int | None) -> None:
        """The first thing a process appends says who it is; at the time of what follows, if that is of long ago."""
        draft, _ = prepare(Writer(word=process.word, version=__version__, **this_process()))
        self._absorb(self._log.append([replace(draft, at=at)], after=self._seen, head=0))

    def _absorb(self, appended: list[AnyEntry]) -> None:
        """Fold what we appended, and what others put before it. Their nodes stay unseen until `refresh`."""
        state = self.history.state
        first = appended[0].seq
        if first == state.seq + 1 and appended[-1].seq == state.seq + len(appended):
            self.history.take(appended)
            if not self._has_news:
                self._seen = state.seq
            return
        new = {entry.seq for entry in appended if entry.seq > state.seq}
        if new:
            items = self._log.read(after=state.seq, before=max(new) + 1)
            entries = [item for item in items if isinstance(item, Entry)]
            self.history.take(entries)
            self._saw([entry for entry in entries if entry.seq not in new])

    def _saw(self, theirs: list[AnyEntry]) -> None:
        """Others wrote these before what we know now."""
        self._has_news = self._has_news or any(is_fence(entry) for entry in theirs)
        if not self._has_news:
            self._seen = self.history.state.seq

    def _conflict(self, *, alone: bool = False) -> Conflict:
        """The conflict with the other writer's name in it."""
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
        """A fold only saves time later: the caller's entry is safe, and must not seem to fail because of it."""
        with self.history.mutex:
            try:
                self._fold_if_due()
            except BaseException as error:
                self._is_stale = True
                if not isinstance(error, TurnlogError):
                    raise

    def _fold_if_due(self) -> None:
        self.history.renew()  # what was erased since must not come back with it
        if self.state.calls is None:
            from turnlog.thread.call.pending import open_calls  # only after a rewind, or in a log of before

            open_calls(self.history)
        # Nothing happens by it: it has the time of what it is about, and a listing shows no other.
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
    """Drafts that a caller handed in, with ids made of `id` if there is one."""
    if not drafts:
        raise Invalid("nothing to append")
    for draft in drafts:
        if not isinstance(draft, Entry):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"{draft!r:.80} is not an entry", hint="use turnlog.Message and the like")
        if isinstance(draft, Set):
            check_fact(draft)
    if id is None:
        return list(drafts)
    return [replace(draft, id=id if not index else f"{id}/{index}") for index, draft in enumerate(drafts)]


@contextmanager
def appending(store: Store, log: Log) -> Generator[Appender]:
    """What appends to a log, until this is left: then the log is closed."""
    with opened(store, log) as history:
        yield Appender(store, history)


def turns_here() -> set[str]:
    """The turns that sessions of this process are in right now."""
    return {appender.turn for appender in list(_appenders) if appender.turn is not None}


_appenders: WeakSet[Appender] = WeakSet()
